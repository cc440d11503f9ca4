package hosted

import (
	"cmp"
	"context"
	"fmt"
	"sync"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/internal/runs"
)

// entry is a registered model.
type entry struct {
	model *art.Model
	base  string
	usage Usage // guarded by the meter

	mu     sync.Mutex // guards the fields below
	run    *runs.Run  // nil before something is stored
	before Usage      // of earlier processes, since the run is open
}

// Register notes m, and neither asks the service nor stores anything: a run directory is opened by the first Log or
// SaveState. ModelOptions.Base is the name of the model at the service, and the name of m without it. Options that
// only make sense for a model in process, Adapter, Fork, Full and ToolFormat, are an [art.ErrUnsupported]; LoRA is not
// looked at.
func (b *Backend) Register(ctx context.Context, m *art.Model) (int, error) {
	if ctx.Err() != nil {
		return 0, context.Cause(ctx)
	}
	opts := m.Options()
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return 0, b.errClosed("register")
	}
	if opts.Adapter != "" || opts.Fork != "" || opts.ToolFormat != "" || opts.Full {
		err := fmt.Errorf("%w: Adapter, Fork, Full or ToolFormat of a model behind an API", art.ErrUnsupported)
		return 0, &art.Error{Op: "register", Err: err, Hint: "leave them out of ModelOptions"}
	}
	for other := range b.models {
		if other.Name() == m.Name() && other.Options().Project == opts.Project {
			err := fmt.Errorf("%w: a model %q of project %q is registered already", art.ErrInvalid, m.Name(), opts.Project)
			return 0, &art.Error{Op: "register", Err: err, Hint: "use that one, or another name"}
		}
	}
	e := &entry{model: m, base: cmp.Or(opts.Base, m.Name())}
	b.models[m] = e
	b.order = append(b.order, m)
	b.opts.Logger.Info("model registered", "model", m.Name(), "base", e.base)
	return 0, nil
}

// DefaultBase returns the name of m.
func (b *Backend) DefaultBase(m *art.Model) string { return m.Name() }

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
