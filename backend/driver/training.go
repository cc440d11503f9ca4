package driver

import (
	"context"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/grpo/credit"
)

// BaseChooser is a [art.Backend] with a base model for models that name none.
type BaseChooser interface {
	// DefaultBase returns the base of m where [art.ModelOptions].Base is empty. [art.Model.Register] puts it there.
	DefaultBase(m *art.Model) string
}

// LossProvider is a Backend that trains with losses beside the built-in ones.
type LossProvider interface {
	// Losses lists the names that [art.TrainConfig].Loss may have besides those of [credit.Losses].
	Losses() []credit.Loss
}

// GroupChecker is a [art.Backend] that says before a training which groups it would skip. [art.Pipeline] asks it;
// without it groups with equal rewards, and of fewer than two trajectories, are those of which nothing can be learned.
type GroupChecker interface {
	// CheckGroup says why a group has no advantages under a configuration with its defaults: it is "" where Train would
	// compute some, and otherwise the reason that [art.TrainResult].Skipped would have for the group.
	CheckGroup(g *art.TrajectoryGroup, cfg *art.TrainConfig) credit.Reason
}

// TrainChecker is a [art.Backend] that says before the rollouts what its Train refuses. [art.Pipeline] asks it when it
// begins, and [art.Model.Train] each time.
type TrainChecker interface {
	// CheckTrain returns the error of Train for a configuration with its defaults: [art.ErrUnsupported] for what the
	// backend does not have, [art.ErrInvalid] for options that do nothing together.
	CheckTrain(cfg *art.TrainConfig) error
}

// RateChooser is a [art.Backend] that knows a learning rate for each model. Others get those of WithDefaults.
type RateChooser interface {
	// LearningRate returns that of a training of m whose configuration has none. It is above 0.
	LearningRate(m *art.Model) (float64, error)
}

// SFTTrainer is a [art.Backend] that can train on given answers.
type SFTTrainer interface {
	// TrainSFT makes the next step of m by supervised training on the assistant messages of the trajectories.
	TrainSFT(
		ctx context.Context, m *art.Model, trajectories []*art.Trajectory, cfg *art.SFTConfig,
	) (*art.TrainResult, error)
}

// DPOTrainer is a [art.Backend] that can train on preferences.
type DPOTrainer interface {
	// TrainDPO makes the next step of m by direct preference optimization. A Skip of its result has the index of a pair as
	// Group, and 0 for the chosen or 1 for the rejected trajectory.
	TrainDPO(ctx context.Context, m *art.Model, pairs []art.Preference, cfg *art.DPOConfig) (*art.TrainResult, error)
}
