package tinker

import (
	"context"
	"net/http"
	"slices"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/server"
)

// Log stores trajectories and metrics in the run directory.
func (b *Backend) Log(
	ctx context.Context, m *art.Model, split string, step int, groups []*art.TrajectoryGroup, metrics map[string]float64,
) error {
	e, err := b.trainable("log", m)
	if err != nil {
		return err
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if len(groups) > 0 {
		if err := e.run.WriteTrajectories(split, step, groups); err != nil {
			return err
		}
	}
	return e.run.Log(split, step, metrics)
}

// History returns the logged rows, after Close too.
func (b *Backend) History(_ context.Context, m *art.Model) ([]art.HistoryRow, error) {
	const op = "history"
	b.mu.Lock()
	e, err := b.known(op, m)
	b.mu.Unlock()
	if err == nil {
		err = e.learns(op)
	}
	if err != nil {
		return nil, err
	}
	return e.run.History()
}

// Dir returns the run directory of m.
func (b *Backend) Dir(m *art.Model) (string, error) {
	e, err := b.trainable("dir", m)
	if err != nil {
		return "", err
	}
	return e.run.Dir(), nil
}

// Handler serves all registered models under their names; see [server.Handler].
func (b *Backend) Handler(opts *art.HandlerOptions) (http.Handler, error) {
	return server.Handler(b.all, &server.Config{Logger: b.opts.Logger}, opts)
}

// Transport answers as m, whatever model a request names.
func (b *Backend) Transport(m *art.Model) http.RoundTripper {
	only := func() []*art.Model { return []*art.Model{m} }
	return server.Transport(server.Routes(only, &server.Config{Logger: b.opts.Logger}), m.Name())
}

func (b *Backend) all() []*art.Model {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.order)
}
