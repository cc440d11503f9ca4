package local

import (
	"context"

	"github.com/goart-dev/art"
)

// pinKey is the context key of the step that answers for a model.
type pinKey struct{ e *entry }

// Pin returns a context by which m answers with the step that is the newest now. Its adapter stays in memory as long as
// the context.
func (b *Backend) Pin(ctx context.Context, m *art.Model) (pinned context.Context, step int, err error) {
	e, err := b.entry("pin", m)
	if err != nil {
		return nil, 0, err
	}
	now := e.serving.Load()
	return context.WithValue(ctx, pinKey{e}, now), now.step, nil
}

// served returns the step that answers calls with ctx.
func (e *entry) served(ctx context.Context) *serving {
	if s, ok := ctx.Value(pinKey{e}).(*serving); ok {
		return s
	}
	return e.serving.Load()
}
