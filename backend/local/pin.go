package local

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/goart-dev/art"
)

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
		err := fmt.Errorf("%w: step %d has no checkpoint", art.ErrInvalid, step)
		return nil, &art.Error{Op: op, Err: err, Hint: "take one of those that Backend.Checkpoints lists"}
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
