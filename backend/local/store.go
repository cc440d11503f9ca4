package local

import (
	"context"

	"github.com/goart-dev/art"
)

// Log stores trajectories and metrics in the run directory.
func (b *Backend) Log(ctx context.Context, m *art.Model, split string, step int, groups []*art.TrajectoryGroup, metrics map[string]float64) error {
	e, err := b.entry("log", m)
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return err
	}
	return b.store(e, split, step, groups, metrics)
}

func (b *Backend) store(e *entry, split string, step int, groups []*art.TrajectoryGroup, metrics map[string]float64) error {
	if len(groups) > 0 {
		if err := e.run.WriteTrajectories(split, step, groups); err != nil {
			return err
		}
	}
	return e.run.Log(split, step, metrics)
}

// Checkpoints returns the stored steps.
func (b *Backend) Checkpoints(_ context.Context, m *art.Model) ([]int, error) {
	e, err := b.entry("checkpoints", m)
	if err != nil {
		return nil, err
	}
	return e.run.Steps(), nil
}

// History returns what was logged.
func (b *Backend) History(_ context.Context, m *art.Model) ([]art.HistoryRow, error) {
	e, err := b.entry("history", m)
	if err != nil {
		return nil, err
	}
	return e.run.History()
}

// DeleteCheckpoints deletes all checkpoints but those to keep and the newest.
func (b *Backend) DeleteCheckpoints(_ context.Context, m *art.Model, keep []int) error {
	e, err := b.entry("delete checkpoints", m)
	if err != nil {
		return err
	}
	return e.run.DeleteCheckpoints(keep)
}

// Trajectories reads back what was stored for (split, step), without loss: ready to be trained on again.
func (b *Backend) Trajectories(_ context.Context, m *art.Model, split string, step int) ([]*art.TrajectoryGroup, error) {
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
