package local

import (
	"context"

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

// served returns the step that answers calls with ctx.
func (e *entry) served(ctx context.Context) *serving {
	if s, ok := ctx.Value(pinKey{e}).(*serving); ok {
		return s
	}
	return e.serving.Load()
}
