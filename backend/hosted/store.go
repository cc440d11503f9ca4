package hosted

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/rundir"
	"github.com/goart-dev/art/internal/runs"
)

// stored returns the run of a model, which the first call opens.
func (b *Backend) stored(e *entry) (*runs.Run, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.run != nil {
		return e.run, nil
	}
	opts := e.model.Options()
	run, err := runs.Open(b.opts.Dir, opts.Project, e.model.Name(), &runs.Options{Logger: b.opts.Logger})
	if err != nil {
		return nil, err
	}
	rows, err := run.History()
	if err = errors.Join(err, b.describe(e, run)); err != nil {
		return nil, errors.Join(err, run.Close())
	}
	e.run, e.before = run, storedUsage(rows)
	return run, nil
}

// describe writes what the run is of. What is stored may be of another model: one behind an API is often replaced by
// the next under the same name. A run that was trained is left alone.
func (b *Backend) describe(e *entry, run *runs.Run) error {
	opts := e.model.Options()
	want := rundir.Description{
		Name: e.model.Name(), Project: opts.Project, Base: e.base, Frozen: opts.Frozen, Seed: opts.Seed, Device: b.host(),
	}
	var have rundir.Description
	known, err := run.ReadModel(&have)
	switch _, trained := run.Latest(); {
	case err != nil:
		return err
	case trained:
		err := fmt.Errorf("%w: the run in %s is trained, on %q", art.ErrInvalid, run.Dir(), have.Base)
		return &art.Error{Op: "open run", Err: err, Hint: "log under another model name"}
	case known && have.Base == want.Base:
		return nil
	case known:
		b.opts.Logger.Warn("the run continues with another model", "run", run.Dir(), "stored", have.Base, "now", want.Base)
	}
	return run.WriteModel(want)
}

// dir is where the run of a model is stored, or would be.
func (b *Backend) dir(e *entry) string {
	return runs.Reference{Project: e.model.Options().Project, Name: e.model.Name()}.Dir(b.opts.Dir)
}

// reader reads what is stored of a model. It is nil when that is nothing.
func (b *Backend) reader(e *entry) (*runs.Reader, error) {
	r, err := runs.NewReader(b.dir(e))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return r, err
}

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
	run, err := b.stored(e)
	if err != nil {
		return err
	}
	if groups = runs.Present(groups); len(groups) > 0 {
		if err := run.WriteTrajectories(split, step, groups); err != nil {
			return err
		}
	}
	all := e.before.plus(b.meter.read(&e.usage)).Metrics()
	maps.Copy(all, metrics)
	return run.Log(split, step, all)
}

// History returns the logged rows, after Close too.
func (b *Backend) History(_ context.Context, m *art.Model) ([]art.HistoryRow, error) {
	b.mu.RLock()
	e, err := b.known("history", m)
	b.mu.RUnlock()
	if err != nil {
		return nil, err
	}
	r, err := b.reader(e)
	if r == nil {
		return nil, err
	}
	return r.History()
}

// Trajectories reads what was logged for (split, step). They are nil for a model of which nothing is stored.
func (b *Backend) Trajectories(
	_ context.Context, m *art.Model, split string, step int,
) ([]*art.TrajectoryGroup, error) {
	e, err := b.entry("trajectories", m)
	if err != nil {
		return nil, err
	}
	r, err := b.reader(e)
	if r == nil {
		return nil, err
	}
	return r.ReadTrajectories(split, step)
}

// Dir returns the run directory of m, which is there when something is stored.
func (b *Backend) Dir(m *art.Model) (string, error) {
	e, err := b.entry("dir", m)
	if err != nil {
		return "", err
	}
	return b.dir(e), nil
}

// SaveState merges patch into the state of the user.
func (b *Backend) SaveState(_ context.Context, m *art.Model, patch any) error {
	e, err := b.begin("save state", m)
	if err != nil {
		return err
	}
	defer b.busy.Done()
	run, err := b.stored(e)
	if err != nil {
		return err
	}
	return run.MergeState(patch)
}

// LoadState reads the state of the user.
func (b *Backend) LoadState(_ context.Context, m *art.Model, v any) (found bool, err error) {
	e, err := b.entry("load state", m)
	if err != nil {
		return false, err
	}
	r, err := b.reader(e)
	if r == nil {
		return false, err
	}
	return r.State(v)
}
