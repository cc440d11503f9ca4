package art

import (
	"context"
	"fmt"
)

// Train makes the next step of the model out of groups. cfg may be nil: defaults. The replies to requests that start
// after it returns are those of the new step.
//
// It returns [ErrNotRegistered], [ErrFrozen], [ErrNoGroups] when groups is empty, and [ErrInvalid] listing every problem
// of cfg; the backend is not asked then. Groups that cannot be trained on are no error: they are listed in
// [TrainResult].Skipped, and the step is made also when that is all of them.
func (m *Model) Train(ctx context.Context, groups []*TrajectoryGroup, cfg *TrainConfig) (*TrainResult, error) {
	b, err := m.registered("train")
	if err != nil {
		return nil, err
	}
	if err := m.trainable("train"); err != nil {
		return nil, err
	}
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if len(groups) == 0 {
		return nil, &Error{"train", ErrNoGroups, "gather at least one group of two trajectories"}
	}
	return m.learned(b.Train(ctx, m, groups, cfg.WithDefaults()))
}

// TrainSFT makes the next step of the model by supervised training on the assistant messages of the trajectories. cfg
// may be nil: defaults.
//
// It returns [ErrNotRegistered], [ErrFrozen], [ErrUnsupported] when the backend is no [SFTTrainer], and [ErrInvalid] for
// no trajectories or a bad cfg.
func (m *Model) TrainSFT(ctx context.Context, trajectories []*Trajectory, cfg *SFTConfig) (*TrainResult, error) {
	trainer, err := capability[SFTTrainer](m, "train sft", "art.SFTTrainer, such as backend/local")
	if err != nil {
		return nil, err
	}
	if err := m.trainable("train sft"); err != nil {
		return nil, err
	}
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if len(trajectories) == 0 {
		return nil, problems{"no trajectories"}.err("train sft", "give at least one with an assistant message")
	}
	return m.learned(trainer.TrainSFT(ctx, m, trajectories, cfg.WithDefaults()))
}

// trainable returns [ErrFrozen] for a frozen model.
func (m *Model) trainable(op string) error {
	if !m.opts.Frozen {
		return nil
	}
	return &Error{op, fmt.Errorf("%w: %q", ErrFrozen, m.name), "train a model made without ModelOptions.Frozen"}
}

// learned notes the step of a training that succeeded.
func (m *Model) learned(result *TrainResult, err error) (*TrainResult, error) {
	if err != nil {
		return nil, err
	}
	m.reached(result.Step)
	return result, nil
}
