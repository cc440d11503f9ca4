package local

import (
	"errors"
	"fmt"
	"slices"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/grpo"
	"github.com/goart-dev/art/grpo/credit"
)

// Losses lists the names of [Options].Losses.
func (b *Backend) Losses() []credit.Loss {
	var names []credit.Loss
	for _, l := range b.opts.Losses {
		names = append(names, credit.Loss(l.Spec().Key))
	}
	return names
}

// checkLosses lists the problems of losses that a program brings.
func checkLosses(losses []grpo.Loss) error {
	var errs []error
	seen := credit.Losses()
	for _, l := range []grpo.Loss{grpo.SupervisedLoss{}, grpo.PreferenceLoss{}} { // their graphs are kept by these keys
		seen = append(seen, credit.Loss(l.Spec().Key))
	}
	for i, l := range losses {
		if l == nil {
			errs = append(errs, fmt.Errorf("loss %d is nil", i))
			continue
		}
		if err := l.Validate(); err != nil {
			errs = append(errs, fmt.Errorf("loss %d: %w", i, err))
			continue
		}
		name := credit.Loss(l.Spec().Key)
		if _, ok := l.(grpo.BatchLoss); ok {
			errs = append(errs, fmt.Errorf("loss %q is a grpo.BatchLoss, which Train does not support", name))
		}
		switch {
		case name == "":
			errs = append(errs, fmt.Errorf("loss %d has no key", i))
		case slices.Contains(seen, name):
			errs = append(errs, fmt.Errorf("loss %d has the key %q of another loss", i, name))
		}
		seen = append(seen, name)
		if len(l.Spec().Metrics) == 0 {
			errs = append(errs, fmt.Errorf("loss %q declares no metrics", name))
		}
	}
	if len(errs) == 0 {
		return nil
	}
	err := fmt.Errorf("%w: %w", art.ErrInvalid, errors.Join(errs...))
	hint := "each of Options.Losses needs a key of its own, which TrainConfig.Loss names"
	return &art.Error{Op: "open", Err: err, Hint: hint}
}

// lossOf returns the loss of a valid configuration with defaults filled in.
func (b *Backend) lossOf(cfg *art.TrainConfig) grpo.Loss {
	var loss grpo.Loss = grpo.PolicyLoss(cfg.Credit().Policy)
	for _, l := range b.opts.Losses {
		if credit.Loss(l.Spec().Key) == cfg.Loss {
			loss = l
		}
	}
	if c := cfg.Correction; c.Method != "" {
		loss = grpo.Corrected{Loss: loss, Correction: c, FromOld: cfg.PrecalculateLogprobs}
	}
	penalty := grpo.Penalized{Loss: loss, Estimator: cfg.KL.Estimator, Entropy: cfg.EntropyBonus}
	if !cfg.KL.Advantage {
		penalty.KL = cfg.KL.Coef
	}
	if penalty.KL == 0 && penalty.Entropy == 0 {
		return loss
	}
	return penalty
}

// CheckTrain refuses a reference that neither a penalty nor the loss uses.
func (b *Backend) CheckTrain(cfg *art.TrainConfig) error {
	if cfg.KL.Coef != 0 || cfg.KL == (credit.KL{}) || b.lossOf(cfg).Spec().Reference {
		return nil
	}
	err := fmt.Errorf("%w: KL has options and no coefficient, and loss %q uses no reference", art.ErrInvalid, cfg.Loss)
	return &art.Error{Op: "train", Err: err, Hint: "leave out KL, or set KL.Coef"}
}
