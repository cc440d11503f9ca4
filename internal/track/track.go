// Package track is what the trackers of backend/track share: a bounded queue behind [art.Events], rows of metrics
// without gaps and duplicates after a kill, a configuration without secrets, and ART's names of metrics.
package track

import (
	"context"
	"time"

	"github.com/goart-dev/art"
)

// Row holds metrics of a step. The keys of a split other than "train" begin with the split, so that a key and a step
// name one value.
type Row struct {
	Time    time.Time
	Step    int
	Metrics map[string]float64
}

// Groups are trajectories of a split and step.
type Groups struct {
	Time   time.Time
	Split  string
	Step   int
	Groups []*art.TrajectoryGroup
	// Advantages are those of [art.TrainResult]; nil when unknown.
	Advantages [][]float64
	// Ratios are those of [art.TrainResult]; nil when unknown.
	Ratios []float32
}

// Values are metrics by step and key.
type Values map[int]map[string]float64

// Run stores what is told of one model. Its methods are called one at a time. After an error they are called again with
// the same arguments, later; ctx ends when the tracker is closed and its time is over.
type Run interface {
	// Written returns the metrics that earlier processes have stored of this run. It is called first.
	Written(ctx context.Context) (Values, error)
	// Config stores the configuration, nested maps of plain values. It is called again when the configuration changes.
	Config(ctx context.Context, config map[string]any) error
	// Rows stores metrics, by rising step.
	Rows(ctx context.Context, rows []Row) error
	// Groups stores trajectories, or nothing where the format has no place for them.
	Groups(ctx context.Context, g Groups) error
	// Close ends the run. failed says that the last training failed.
	Close(ctx context.Context, failed bool) error
}

// Rewinder is a [Run] that can take back what it has stored. Where a Run cannot, a metric that an earlier process
// stored for a step stays, and is not stored a second time when the step is made again.
type Rewinder interface {
	// Rewind takes back what was stored of steps that the run no longer has: of each step from the given one, what keep
	// lacks.
	Rewind(ctx context.Context, step int, keep Values) error
}
