package local

import (
	"context"
	"fmt"
	"time"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/internal/runs"
	"github.com/goart-dev/art/internal/trainer"
)

// Restore commits the next step as a copy of a stored one, with its optimizer, and serves it.
func (b *Backend) Restore(ctx context.Context, m *art.Model, step int) (int, error) {
	const op = "restore"
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	e, err := b.beginStep(op, m)
	if err != nil {
		return 0, err
	}
	defer e.training.Unlock()
	from, ok := e.run.Checkpoint(step)
	if !ok {
		err := fmt.Errorf("%w: step %d has no checkpoint", art.ErrInvalid, step)
		return 0, &art.Error{Op: op, Err: err, Hint: "take one of those that Backend.Checkpoints lists"}
	}
	if err := e.run.Verify(step); err != nil {
		return 0, err
	}
	next, err := e.restore(b, from, step)
	if err != nil {
		return 0, err
	}
	b.opts.Logger.Info("step restored", "model", m.Name(), "from", step, "step", next)
	b.retain(m, e)
	return next, nil
}

// restore commits and serves the checkpoint in a folder as the next step. e.training is held.
func (e *entry) restore(b *Backend, from string, step int) (next int, err error) {
	restored, state, err := readCheckpoint(from, e.base)
	if err != nil {
		return 0, checkpointError("restore", from, err)
	}
	onDevice, err := restored.upload(e.base)
	if err != nil {
		return 0, &art.Error{Op: "restore", Err: err}
	}
	next = e.run.Next()
	update := runs.Update{Metrics: map[string]float64{"train/restored_step": float64(step)}}
	if err := e.run.CommitUpdate(next, update, runs.CopyCheckpoint(from)); err != nil {
		return 0, err
	}
	e.policy, e.state = restored, state
	e.serving.Store(&serving{step: next, adapter: onDevice})
	e.committed = time.Now()
	return next, nil
}

// readCheckpoint reads policy and optimizer of a checkpoint.
func readCheckpoint(dir string, s *base) (policy, *trainer.State, error) {
	p, err := readPolicy(dir, s)
	if err != nil {
		return policy{}, nil, err
	}
	p, state, err := p.begin()
	if err != nil {
		return policy{}, nil, err
	}
	return p, state, readOptimizer(dir, state)
}

// checkpointError is the error of a checkpoint that cannot be read.
func checkpointError(op, dir string, err error) error {
	return &art.Error{
		Op: op, Err: fmt.Errorf("%w: %s: %w", art.ErrCorrupt, dir, err),
		Hint: "restore the folder from a copy, or move it away to continue from the previous step",
	}
}
