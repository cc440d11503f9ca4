package local

import (
	"context"
	"fmt"
	"slices"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/grpo"
	"github.com/goart-dev/art/grpo/credit"
	"github.com/goart-dev/art/internal/trainer"
)

// addLogprobs returns normalised sequences with the logprobs that cfg needs besides those of the sampler: of the policy
// before its update, and of a reference. metrics gets what is measured.
func (u *policyUpdate) addLogprobs(
	ctx context.Context, e *entry, t *trainer.Trainer, seqs []grpo.Sequence, metrics map[string]float64,
) ([]grpo.Sequence, error) {
	seqs, cfg := slices.Clone(seqs), u.cfg
	if cfg.PrecalculateLogprobs {
		err := score(ctx, t, e.state, cfg, seqs, func(s *grpo.Sequence, logprobs []float32) { s.Old = logprobs })
		if err != nil {
			return nil, err
		}
	}
	if !cfg.KL.Advantage && !u.loss.Spec().Reference {
		return seqs, nil
	}
	reference, err := u.reference(e, t)
	if err != nil {
		return nil, err
	}
	err = score(ctx, t, reference, cfg, seqs, func(s *grpo.Sequence, logprobs []float32) { s.Reference = logprobs })
	if err != nil || !cfg.KL.Advantage {
		return seqs, err
	}
	metrics["loss/kl_ref"], err = shapeByKL(seqs, cfg.KL)
	return seqs, err
}

// shapeByKL shapes the advantages of sequences in place, see [credit.ShapeByKL]. It leaves out those with logprobs that
// are not finite, whose update the trainer skips.
func shapeByKL(seqs []grpo.Sequence, kl credit.KL) (mean float64, err error) {
	var whole []grpo.Sequence
	var from []int
	for i := range seqs {
		if seqs[i].Validate() == nil {
			whole, from = append(whole, seqs[i]), append(from, i)
		}
	}
	shaped, mean, err := credit.ShapeByKL(whole, kl.Coef, kl.Estimator)
	for i := range shaped {
		seqs[from[i]] = shaped[i]
	}
	return mean, err
}

// score computes the logprobs of sequences under a state, and hands them to set.
func score(
	ctx context.Context, t *trainer.Trainer, state *trainer.State, cfg *art.TrainConfig, seqs []grpo.Sequence,
	set func(s *grpo.Sequence, logprobs []float32),
) error {
	lists, err := t.Logprobs(ctx, state, seqs, cfg.MicroBatch)
	if err != nil {
		return err
	}
	for i := range seqs {
		set(&seqs[i], lists[i])
	}
	return nil
}

// reference returns the parameters that a penalty keeps close to, or that a loss compares with.
func (u *policyUpdate) reference(e *entry, t *trainer.Trainer) (*trainer.State, error) {
	k := u.cfg.KL
	step := max(u.step-1-k.Lag, 0)
	switch {
	case k.Step != nil:
		step = *k.Step
	case k.Lag == 0:
		return e.policy.baseState(t, e.base, e.state)
	}
	dir, err := u.checkpoint(step)
	if err != nil {
		return nil, err
	}
	_, state, err := readCheckpoint(dir, e.base)
	if err != nil {
		return nil, checkpointError("train", dir, err)
	}
	if !slices.EqualFunc(state.Shapes, e.state.Shapes, slices.Equal[[]int]) {
		err := fmt.Errorf("%w: the reference of KL is step %d, whose adapter has other shapes", art.ErrInvalid, step)
		return nil, &art.Error{Op: "train", Err: err, Hint: "take another step"}
	}
	return state, nil
}
