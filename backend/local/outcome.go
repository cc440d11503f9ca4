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
	if errors.Is(err, trainer.ErrDiverged) {
		hint = fmt.Sprintf("lower LearningRate, which is %v", opts.rate)
		if opts.maxGradNorm <= 0 {
			hint += ", or bound the gradient by MaxGradNorm, which is off"
		}
		hint += "; the model stays at the previous step"
	}
	return &art.Error{Op: op, Err: deviceError(err), Hint: hint}
}

// unmoved is the change of a logprob, in nats, up to which a step counts as having changed nothing: 0.4 % of a
// probability. At that pace it takes 250 steps to make a token e times as likely. ART's learning rate of 5e-6 changes
// the built-in model by less.
const unmoved = 4e-3

// namedSkips is the largest number of trajectories that a warning names. All are in the result.
const namedSkips = 8

// warnSkipped warns of a step some or all of whose updates were skipped, because of the trajectories of skips.
func (b *Backend) warnSkipped(m *art.Model, step int, report *trainer.Report, skips []art.Skip) {
	if report.Skipped == 0 {
		return
	}
	what := "updates of the step were skipped"
	if report.Updates == 0 {
		what = "the step changed nothing: all of its updates were skipped"
	}
	var named []string
	for _, s := range skips[:min(len(skips), namedSkips)] {
		named = append(named, fmt.Sprintf("%d of group %d: %s", s.Trajectory, s.Group, s.Detail))
	}
	if more := len(skips) - len(named); more > 0 {
		named = append(named, fmt.Sprintf("%d more", more))
	}
	b.opts.Logger.Warn(what+" because their loss or gradient is NaN or infinite: make rewards smaller, leave "+
		"NormalizeAdvantages unset, or go back with Model.Restore if earlier steps made the adapter too large",
		"model", m.Name(), "step", step, "data/updates", report.Updates, "data/updates_skipped", report.Skipped,
		"trajectories", named)
}

// warnUnmoved warns of a step that changed no logprob of the trainer's probe, a few sequences of the batch, by more
// than unmoved. One without updates is warnSkipped's.
func (b *Backend) warnUnmoved(m *art.Model, step int, rate float64, report *trainer.Report) {
	if report.Updates == 0 || report.Change.Max > unmoved {
		return
	}
	b.opts.Logger.Warn("the step changed almost nothing: raise LearningRate, and MaxGradNorm if the gradient is clipped",
		"model", m.Name(), "step", step, "LearningRate", rate, "train/logprob_change_max", report.Change.Max)
}
