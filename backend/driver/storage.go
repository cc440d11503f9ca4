package driver

import (
	"context"

	"github.com/goart-dev/art"
)

// Logger is a [art.Backend] that stores trajectories and metrics. Its trainings store, with the step k+1 that they
// make, the row of split "train" and step k: what [art.Metrics] computes of the groups, and the metrics of the result.
type Logger interface {
	// Log stores groups and metrics under (split, step). A second call for the same pair merges metrics by key; groups
	// replace those before, unless a training stored them.
	Log(
		ctx context.Context, m *art.Model, split string, step int, groups []*art.TrajectoryGroup, metrics map[string]float64,
	) error
}

// CheckpointKeeper is a [art.Backend] that stores a checkpoint for each step.
type CheckpointKeeper interface {
	// Checkpoints returns the stored steps in ascending order.
	Checkpoints(ctx context.Context, m *art.Model) ([]int, error)
	// History returns what was logged, in the order of the log. It does so after Close too: trackers are often closed
	// last, and ask for what they have missed.
	History(ctx context.Context, m *art.Model) ([]art.HistoryRow, error)
	// DeleteCheckpoints deletes all checkpoints but those of the steps to keep.
	DeleteCheckpoints(ctx context.Context, m *art.Model, keep []int) error
}

// CheckpointRestorer is a [art.Backend] that can go back to a stored step.
type CheckpointRestorer interface {
	// Restore makes the next step of m, k+1 after k, a copy of a stored one: weights and optimizer.
	Restore(ctx context.Context, m *art.Model, step int) (next int, err error)
}

// StateKeeper is a [art.Backend] that stores user state with a run.
type StateKeeper interface {
	// SaveState merges patch into the state of m and stores it, see [art.Model.SaveState].
	SaveState(ctx context.Context, m *art.Model, patch any) error
	// LoadState reads the state of m into v, a pointer. It returns false when there is none.
	LoadState(ctx context.Context, m *art.Model, v any) (found bool, err error)
}
