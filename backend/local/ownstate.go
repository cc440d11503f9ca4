package local

import (
	"context"
	"slices"
	"strings"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/loop"
	"github.com/goart-dev/art/internal/runs"
	"github.com/goart-dev/art/internal/trainer"
	"github.com/goart-dev/art/internal/trainset"
)

// ownState is the training state of a model for [loop.Trainer].
type ownState struct {
	session *trainer.Session // nil while it is the newest step
	changed bool             // since the newest step, apart from gradients
}

// end frees a state that is the newest step, and refuses any other one.
func (s *ownState) end(op string) error {
	if s.changed || s.session != nil && s.session.Pending() {
		return invalid(op, "call Model.Publish, or Model.LoadWeights with the newest step to drop them",
			"the training state has updates or gradients that are not published")
	}
	s.free()
	return nil
}

func (s *ownState) free() {
	if s.session != nil {
		s.session.Free()
	}
	*s = ownState{}
}

// session returns the training state on the device. e.training is held.
func (e *entry) session(b *Backend) (*trainer.Session, error) {
	if e.own.session == nil {
		s, err := e.learner(b).Start(e.state)
		if err != nil {
			return nil, err
		}
		e.own.session = s
	}
	return e.own.session, nil
}

// current returns the training state on the host, which must not be changed. e.training is held.
func (e *entry) current() (*trainer.State, error) {
	if !e.own.changed {
		return e.state, nil
	}
	return e.own.session.State()
}

// SaveWeights stores the training state below the run directory, in the folder weights/NAME, which PEFT reads, or
// transformers where all weights are trained.
func (b *Backend) SaveWeights(ctx context.Context, m *art.Model, name string, optimizer bool) (string, error) {
	const op = "save weights"
	if err := ctx.Err(); err != nil {
		return "", err
	}
	e, err := b.lock(op, m)
	if err != nil {
		return "", err
	}
	defer e.training.Unlock()
	write, err := e.weightsWriter(baseName(m), optimizer)
	if err != nil {
		return "", ownError(ctx, op, err)
	}
	err = e.run.SaveWeights(name, write)
	return e.run.WeightsReference(name).String(), err
}

// weightsWriter returns a function that writes the training state into a folder. While that is the newest step, the
// files are links to those of the checkpoint.
func (e *entry) weightsWriter(baseName string, optimizer bool) (func(dir string) error, error) {
	if newest, ok := e.run.Checkpoint(e.serving.Load().step); ok && !e.own.changed {
		if optimizer {
			return runs.CopyCheckpoint(newest), nil
		}
		return runs.CopyCheckpoint(newest, optimizerFile, trainerFile), nil
	}
	state, err := e.current()
	if err != nil {
		return nil, err
	}
	now, err := e.policy.with(state.Params)
	return func(dir string) error {
		err := now.save(dir, e.base, baseName)
		if optimizer && err == nil {
			err = writeTrainer(dir, state)
		}
		return err
	}, err
}

// LoadWeights replaces the training state.
func (b *Backend) LoadWeights(ctx context.Context, m *art.Model, path string, optimizer bool) error {
	const op = "load weights"
	if err := ctx.Err(); err != nil {
		return err
	}
	e, err := b.lock(op, m)
	if err != nil {
		return err
	}
	defer e.training.Unlock()
	dir, newest, err := b.findWeights(m, e, path)
	if err != nil {
		return err
	}
	if optimizer && !hasOptimizer(dir) {
		return invalid(op, "load it with a new one", "%s was saved without its optimizer", path)
	}
	loaded, err := e.loadPolicy(op, dir)
	if err != nil {
		return err
	}
	_, state, err := loaded.begin()
	if err != nil {
		return &art.Error{Op: op, Err: err}
	}
	if optimizer {
		if err := readOptimizer(dir, state); err != nil {
			return checkpointError(op, dir, err)
		}
	}
	session, err := e.learner(b).Start(state)
	if err != nil {
		return ownError(ctx, op, err)
	}
	e.own.free()
	e.own = ownState{session: session, changed: !newest || !optimizer}
	return nil
}

// loadPolicy reads a policy of the shape of the model's.
func (e *entry) loadPolicy(op, dir string) (policy, error) {
	p, err := readPolicy(dir, e.base)
	if err != nil {
		return policy{}, checkpointError(op, dir, err)
	}
	if p.shape() != e.policy.shape() {
		return policy{}, invalid(op, "register a model with ModelOptions.Fork to begin with it", "%s has an adapter of "+
			"another rank, alpha or layers, or only one of the two is DoRA or all weights", dir)
	}
	return p, nil
}

// findWeights returns the folder of a step or of saved weights, and whether it is the newest step of m.
func (b *Backend) findWeights(m *art.Model, e *entry, path string) (dir string, newest bool, err error) {
	if strings.HasPrefix(path, "@") {
		path = m.Name() + path
	}
	ref, err := runs.ParseReference(path, m.Options().Project)
	if err != nil {
		return "", false, err
	}
	reader, err := runs.NewReader(ref.Dir(b.opts.Dir))
	if err != nil {
		return "", false, err
	}
	if dir, err = reader.Find(ref.Step); err != nil {
		return "", false, err
	}
	var have, want description
	if err := reader.Model(&have); err != nil {
		return "", false, err
	}
	if _, err := e.run.ReadModel(&want); err != nil {
		return "", false, err
	}
	if !have.sameBase(want) {
		return "", false, invalid("load weights", "load weights of a run on the same base model",
			"%s has the base %s, and the model %s", ref, have.baseText(), want.baseText())
	}
	latest, _ := e.run.Checkpoint(e.serving.Load().step)
	return dir, dir == latest, nil
}

// SavedWeights lists what SaveWeights has stored.
func (b *Backend) SavedWeights(_ context.Context, m *art.Model) ([]loop.SavedWeights, error) {
	e, err := b.stored("saved weights", m)
	if err != nil {
		return nil, err
	}
	list, err := e.run.SavedWeights()
	var out []loop.SavedWeights
	for _, w := range list {
		dir, bad := e.run.WeightsDir(w.Name)
		if bad != nil {
			return nil, bad
		}
		out = append(out, loop.SavedWeights{
			Name: w.Name, Path: e.run.WeightsReference(w.Name).String(), Optimizer: hasOptimizer(dir), Bytes: w.Bytes,
		})
	}
	return out, err
}

// DeleteWeights deletes what SaveWeights has stored.
func (b *Backend) DeleteWeights(_ context.Context, m *art.Model, name string) error {
	e, err := b.stored("delete weights", m)
	if err != nil {
		return err
	}
	return e.run.DeleteWeights(name)
}

// Publish commits the training state as the next step, and serves it. Such a step cannot be replayed.
func (b *Backend) Publish(
	ctx context.Context, m *art.Model, groups []*art.TrajectoryGroup, metrics map[string]float64,
) (int, error) {
	const op = "publish"
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	e, err := b.lock(op, m)
	if err != nil {
		return 0, err
	}
	defer e.training.Unlock()
	state, err := e.current()
	if err == nil {
		err = state.CheckFinite()
	}
	if err != nil {
		return 0, ownError(ctx, op, err)
	}
	groups = runs.Present(groups)
	update := runs.Update{Groups: groups, Metrics: trainset.RowMetrics(groups, metrics)}
	if err := b.publish(m, e, state, update, nil); err != nil {
		return 0, err
	}
	if e.own.changed = false; e.own.session != nil && !e.own.session.Pending() {
		e.own.free() // the state is on the host
	}
	return e.serving.Load().step, nil
}

// Snapshot makes s answer with weights as they are now.
func (b *Backend) Snapshot(ctx context.Context, m *art.Model, path string, s *art.Model) error {
	const op = "snapshot"
	if err := ctx.Err(); err != nil {
		return err
	}
	e, err := b.lock(op, m)
	if err != nil {
		return err
	}
	defer e.training.Unlock()
	onDevice := e.serving.Load().adapter
	if path != "" || e.own.changed {
		now, err := b.snapshot(m, e, path)
		if err != nil {
			return ownError(ctx, op, err)
		}
		if onDevice, err = now.upload(e.base); err != nil {
			return &art.Error{Op: op, Err: err}
		}
	}
	copied := &entry{base: e.base, template: e.template, grammars: e.grammars, committed: e.committed}
	copied.serving.Store(&serving{step: e.serving.Load().step, adapter: onDevice})
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return &art.Error{Op: op, Err: art.ErrClosed}
	}
	b.models[s] = copied
	return nil
}

// snapshot returns the policy of a path, or of the training state.
func (b *Backend) snapshot(m *art.Model, e *entry, path string) (policy, error) {
	if path != "" {
		dir, _, err := b.findWeights(m, e, path)
		if err != nil {
			return policy{}, err
		}
		return e.loadPolicy("snapshot", dir)
	}
	state, err := e.current()
	if err != nil {
		return policy{}, err
	}
	return e.policy.with(state.Params)
}

// Release forgets a model, and closes its run.
func (b *Backend) Release(_ context.Context, m *art.Model) error {
	b.mu.Lock()
	e := b.models[m]
	switch {
	case b.closed:
		b.mu.Unlock()
		return &art.Error{Op: "release", Err: art.ErrClosed}
	case e == nil:
		b.mu.Unlock()
		return &art.Error{Op: "release", Err: art.ErrNotRegistered}
	}
	delete(b.models, m)
	b.order = slices.DeleteFunc(slices.Clone(b.order), func(x *art.Model) bool { return x == m })
	b.mu.Unlock()
	return e.close()
}

// close frees what training holds, and closes the run. It waits for a training call in progress.
func (e *entry) close() error {
	e.training.Lock()
	defer e.training.Unlock()
	e.own.free()
	if e.run == nil {
		return nil
	}
	return e.run.Close()
}
