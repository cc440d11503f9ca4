package local

import (
	"context"
	"errors"
	"fmt"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/internal/trainer"
)

// learningOptions are the options of a training call that determine how far it moves the adapter.
type learningOptions struct{ rate, maxGradNorm float64 }

// trainError adds a hint to an error of the trainer. Nothing has changed then: the model stays at its step, and its
// optimizer too.
func trainError(ctx context.Context, op string, err error, opts learningOptions) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	if told := new(art.Error); errors.As(err, &told) {
		return err
	}
	hint := ""
	switch {
	case errors.Is(err, trainer.ErrDiverged):
		hint = fmt.Sprintf("lower LearningRate, which is %v", opts.rate)
		if opts.maxGradNorm <= 0 {
			hint += ", or bound the gradient by MaxGradNorm, which is off"
		}
		hint += "; the model stays at the previous step"
	case errors.Is(err, trainer.ErrNotFinite):
		hint = "make rewards smaller, leave NormalizeAdvantages unset, or start over with a lower LearningRate if earlier " +
			"steps made the adapter too large; the model stays at the previous step"
	}
	return &art.Error{Op: op, Err: deviceError(err), Hint: hint}
}

// unmoved is the change of a logprob, in nats, up to which a step counts as having changed nothing: 0.2 % of a
// probability. At that pace it takes 500 steps to make a token e times as likely.
const unmoved = 2e-3

// warnUnmoved warns of a step that changed no logprob of the trainer's probe, a few sequences of the batch, by more
// than unmoved.
func (b *Backend) warnUnmoved(m *art.Model, step int, rate float64, report *trainer.Report) {
	if report.Change.Max > unmoved {
		return
	}
	b.opts.Logger.Warn("the step changed almost nothing: raise LearningRate, and MaxGradNorm if the gradient is clipped",
		"model", m.Name(), "step", step, "LearningRate", rate, "train/logprob_change_max", report.Change.Max)
}
