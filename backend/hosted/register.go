package hosted

import (
	"context"
	"errors"
	"fmt"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/rundir"
	"github.com/goart-dev/art/internal/runs"
)

// entry is a registered model.
type entry struct {
	run    *runs.Run
	before Usage // of earlier processes
	usage  Usage // guarded by the meter
}

// Register opens the run directory of m. ModelOptions.Base is the name of the model at the service, which is not
// asked before the first call. Options that only make sense for a model in process, Adapter, Fork, Full and ToolFormat,
// are an [art.ErrUnsupported]; LoRA is not looked at.
func (b *Backend) Register(ctx context.Context, m *art.Model) (int, error) {
	if ctx.Err() != nil {
		return 0, context.Cause(ctx)
	}
	if err := b.reserveModel(m); err != nil {
		return 0, err
	}
	defer b.busy.Done()
	run, err := b.open(m)
	var before Usage
	if err == nil {
		before, err = readUsage(run)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if err != nil {
		delete(b.models, m)
		return 0, err
	}
	b.models[m] = &entry{run: run, before: before}
	b.order = append(b.order, m)
	b.opts.Logger.Info("model registered", "model", m.Name(), "base", m.Options().Base, "dir", run.Dir())
	return 0, nil
}

// readUsage reads what the run has stored. It closes the run if that fails.
func readUsage(run *runs.Run) (Usage, error) {
	rows, err := run.History()
	if err != nil {
		return Usage{}, errors.Join(err, run.Close())
	}
	return storedUsage(rows), nil
}

// reserveModel notes that m is being registered.
func (b *Backend) reserveModel(m *art.Model) error {
	opts := m.Options()
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return b.errClosed("register")
	}
	if _, ok := b.models[m]; ok {
		err := fmt.Errorf("%w: model %q is registered already", art.ErrInvalid, m.Name())
		return &art.Error{Op: "register", Err: err}
	}
	if opts.Adapter != "" || opts.Fork != "" || opts.ToolFormat != "" || opts.Full {
		err := fmt.Errorf("%w: Adapter, Fork, Full or ToolFormat of a model behind an API", art.ErrUnsupported)
		return &art.Error{Op: "register", Err: err, Hint: "leave them out of ModelOptions"}
	}
	b.models[m] = nil
	b.busy.Add(1)
	return nil
}

// open opens the run of m, and checks that it is one of the same model.
func (b *Backend) open(m *art.Model) (*runs.Run, error) {
	opts := m.Options()
	run, err := runs.Open(b.opts.Dir, opts.Project, m.Name(), &runs.Options{Logger: b.opts.Logger})
	if err != nil {
		return nil, err
	}
	want := rundir.Description{
		Name: m.Name(), Project: opts.Project, Base: opts.Base, Frozen: opts.Frozen, Seed: opts.Seed, Device: b.host(),
	}
	var have rundir.Description
	known, err := run.ReadModel(&have)
	switch _, trained := run.Latest(); {
	case err != nil:
	case trained || known && have.Base != want.Base:
		err = &art.Error{
			Op: "register", Hint: "use another model name for a new run",
			Err: fmt.Errorf("%w: the run in %s is of the base %q on %s", art.ErrInvalid, run.Dir(), have.Base, have.Device),
		}
	case !known:
		err = run.WriteModel(want)
	}
	if err != nil {
		return nil, errors.Join(err, run.Close())
	}
	return run, nil
}

// host is where the service is.
func (b *Backend) host() string { return b.address.Hostname() }

// entry returns what was registered for m.
func (b *Backend) entry(op string, m *art.Model) (*entry, error) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return b.registered(op, m)
}

// begin is entry for what Close waits for. The caller calls busy.Done.
func (b *Backend) begin(op string, m *art.Model) (*entry, error) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	e, err := b.registered(op, m)
	if err == nil {
		b.busy.Add(1)
	}
	return e, err
}

// registered is entry under mu.
func (b *Backend) registered(op string, m *art.Model) (*entry, error) {
	if b.closed {
		return nil, b.errClosed(op)
	}
	return b.known(op, m)
}

// known is registered of a backend that may be closed.
func (b *Backend) known(op string, m *art.Model) (*entry, error) {
	if e := b.models[m]; e != nil {
		return e, nil
	}
	return nil, &art.Error{Op: op, Err: art.ErrNotRegistered, Hint: "call Register on this backend first"}
}
