package hosted

import (
	"context"
	"maps"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/internal/runs"
)

// Log stores trajectories and metrics in the run directory, with [Usage.Metrics] of m since its run began, in earlier
// processes too.
func (b *Backend) Log(
	ctx context.Context, m *art.Model, split string, step int, groups []*art.TrajectoryGroup, metrics map[string]float64,
) error {
	e, err := b.begin("log", m)
	if err != nil {
		return err
	}
	defer b.busy.Done()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if groups = runs.Present(groups); len(groups) > 0 {
		if err := e.run.WriteTrajectories(split, step, groups); err != nil {
			return err
		}
	}
	all := e.before.plus(b.meter.read(&e.usage)).Metrics()
	maps.Copy(all, metrics)
	return e.run.Log(split, step, all)
}

// History returns the logged rows, after Close too.
func (b *Backend) History(_ context.Context, m *art.Model) ([]art.HistoryRow, error) {
	b.mu.RLock()
	e, err := b.known("history", m)
	b.mu.RUnlock()
	if err != nil {
		return nil, err
	}
	return e.run.History()
}

// Trajectories reads what was logged for (split, step).
func (b *Backend) Trajectories(
	_ context.Context, m *art.Model, split string, step int,
) ([]*art.TrajectoryGroup, error) {
	e, err := b.entry("trajectories", m)
	if err != nil {
		return nil, err
	}
	return e.run.ReadTrajectories(split, step)
}

// Dir returns the run directory of m.
func (b *Backend) Dir(m *art.Model) (string, error) {
	e, err := b.entry("dir", m)
	if err != nil {
		return "", err
	}
	return e.run.Dir(), nil
}

// SaveState merges patch into the state of the user.
func (b *Backend) SaveState(_ context.Context, m *art.Model, patch any) error {
	e, err := b.begin("save state", m)
	if err != nil {
		return err
	}
	defer b.busy.Done()
	return e.run.MergeState(patch)
}

// LoadState reads the state of the user.
func (b *Backend) LoadState(_ context.Context, m *art.Model, v any) (found bool, err error) {
	e, err := b.entry("load state", m)
	if err != nil {
		return false, err
	}
	return e.run.ReadState(v)
}
