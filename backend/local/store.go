package local

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/internal/quantity"
	"github.com/goart-dev/art/internal/runs"
)

// Log stores trajectories and metrics in the run directory, except what Train has already stored for (train, step).
func (b *Backend) Log(
	ctx context.Context, m *art.Model, split string, step int, groups []*art.TrajectoryGroup, metrics map[string]float64,
) error {
	e, err := b.stored("log", m)
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return err
	}
	if groups = runs.Present(groups); len(groups) > 0 {
		if err := e.run.WriteTrajectories(split, step, groups); err != nil {
			return err
		}
	}
	return e.run.Log(split, step, metrics)
}

// stored returns the entry of a model that has a run directory.
func (b *Backend) stored(op string, m *art.Model) (*entry, error) {
	e, err := b.entry(op, m)
	if err == nil {
		err = e.hasRun(op, m)
	}
	return e, err
}

// hasRun returns the error of an entry without a run directory.
func (e *entry) hasRun(op string, m *art.Model) error {
	if e.run != nil {
		return nil
	}
	err := fmt.Errorf("%w: %q is a snapshot, which has no run", art.ErrUnsupported, m.Name())
	return &art.Error{Op: op, Err: err, Hint: "use the model that it was made of"}
}

// Checkpoints returns the stored steps.
func (b *Backend) Checkpoints(_ context.Context, m *art.Model) ([]int, error) {
	e, err := b.stored("checkpoints", m)
	if err != nil {
		return nil, err
	}
	return e.run.Steps(), nil
}

// History returns the logged rows, after Close too.
func (b *Backend) History(_ context.Context, m *art.Model) ([]art.HistoryRow, error) {
	const op = "history"
	b.mu.RLock()
	e, err := b.known(op, m)
	b.mu.RUnlock()
	if err == nil {
		err = e.hasRun(op, m)
	}
	if err != nil {
		return nil, err
	}
	return e.run.History()
}

// DeleteCheckpoints deletes all checkpoints but those to keep and the newest.
func (b *Backend) DeleteCheckpoints(_ context.Context, m *art.Model, keep []int) error {
	e, err := b.stored("delete checkpoints", m)
	if err != nil {
		return err
	}
	return e.run.DeleteCheckpoints(keep)
}

// Trajectories reads what was stored for (split, step), without loss, so that it can be trained on again.
func (b *Backend) Trajectories(
	_ context.Context, m *art.Model, split string, step int,
) ([]*art.TrajectoryGroup, error) {
	e, err := b.stored("trajectories", m)
	if err != nil {
		return nil, err
	}
	return e.run.ReadTrajectories(split, step)
}

// Dir returns the run directory of m.
func (b *Backend) Dir(m *art.Model) (string, error) {
	e, err := b.stored("dir", m)
	if err != nil {
		return "", err
	}
	return e.run.Dir(), nil
}

// SaveState merges patch into the state of the user.
func (b *Backend) SaveState(_ context.Context, m *art.Model, patch any) error {
	e, err := b.stored("save state", m)
	if err != nil {
		return err
	}
	return e.run.MergeState(patch)
}

// LoadState reads the state of the user.
func (b *Backend) LoadState(_ context.Context, m *art.Model, v any) (found bool, err error) {
	e, err := b.stored("load state", m)
	if err != nil {
		return false, err
	}
	return e.run.ReadState(v)
}

// saySize says once in a process what the first step that it stores takes on disk, where all steps are kept. A step is
// the adapter or all weights, and twice as much for the optimizer. e.training is held.
func (b *Backend) saySize(m *art.Model, e *entry, step int) {
	if e.sized {
		return
	}
	e.sized = true
	size, kept := runs.CheckpointBytes(e.run.Dir(), step), "by ModelOptions.Retention"
	if m.Options().Retention == nil {
		kept = "all; ModelOptions.Retention keeps fewer"
	}
	b.opts.Logger.Info("size of a step", "model", m.Name(), "bytes", size, "kept", kept, "folder", e.run.Dir())
	if m.Options().Retention == nil {
		fmt.Fprintf(b.progressOutput(),
			"each step of %s takes %s in %s, and all are kept: ModelOptions.Retention keeps fewer\n",
			m.Name(), quantity.Bytes(size), e.run.Dir())
	}
}

// retain applies the retention of m. What cannot be deleted is deleted at a later step.
func (b *Backend) retain(m *art.Model, e *entry) {
	retention := m.Options().Retention
	if retention == nil {
		return
	}
	rows, err := e.run.History()
	if err == nil {
		err = e.run.DeleteCheckpoints(retention.Keep(e.run.Steps(), rows))
	}
	if err != nil {
		b.opts.Logger.Warn("old checkpoints were not deleted", "model", m.Name(), "err", err)
	}
}

// pinKey is the context key of the step that answers for a model.
type pinKey struct{ e *entry }

// Pin returns the step of m that is the newest now, and what makes a context with which it answers.
func (b *Backend) Pin(m *art.Model) (pinned func(context.Context) context.Context, step int, err error) {
	e, err := b.entry("pin", m)
	if err != nil {
		return nil, 0, err
	}
	now := e.serving.Load()
	return func(ctx context.Context) context.Context { return context.WithValue(ctx, pinKey{e}, now) }, now.step, nil
}

// keptSteps is how many older steps of a model stay in memory after they were pinned: one where all weights are
// trained.
const keptSteps = 4

// pinnedSteps are the older steps that were pinned last, the newest use first.
type pinnedSteps struct {
	mu   sync.Mutex // held while one is loaded
	list []*serving
}

// PinStep returns a context in which a stored step of m answers. The last few of them stay in memory.
func (b *Backend) PinStep(
	ctx context.Context, m *art.Model, step int,
) (pinned func(context.Context) context.Context, err error) {
	const op = "pin step"
	e, err := b.stored(op, m)
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return nil, err
	}
	now := e.serving.Load()
	if now.step != step {
		if now, err = e.older(b, op, step); err != nil {
			return nil, err
		}
	}
	return func(ctx context.Context) context.Context { return context.WithValue(ctx, pinKey{e}, now) }, nil
}

// older returns a stored step, from memory if it was asked for lately.
func (e *entry) older(b *Backend, op string, step int) (*serving, error) {
	p := &e.pinned
	p.mu.Lock()
	defer p.mu.Unlock()
	at := slices.IndexFunc(p.list, func(s *serving) bool { return s.step == step })
	if at >= 0 {
		s := p.list[at]
		p.list = slices.Insert(slices.Delete(p.list, at, at+1), 0, s)
		return s, nil
	}
	dir, ok := e.run.Checkpoint(step)
	if !ok {
		return nil, invalid(op, "take one of those that Backend.Checkpoints lists", "step %d has no checkpoint", step)
	}
	stored, err := readPolicy(dir, e.base)
	if err != nil {
		return nil, checkpointError(op, dir, err)
	}
	adapter, err := stored.upload(e.base)
	if err != nil {
		return nil, &art.Error{Op: op, Err: err}
	}
	s := &serving{step: step, adapter: adapter}
	p.list = slices.Insert(p.list, 0, s)
	kept := keptSteps
	if stored.full() {
		kept = 1
	}
	p.list = p.list[:min(len(p.list), kept)]
	return s, nil
}

// served returns the step that answers calls with ctx.
func (e *entry) served(ctx context.Context) *serving {
	if s, ok := ctx.Value(pinKey{e}).(*serving); ok {
		return s
	}
	return e.serving.Load()
}
