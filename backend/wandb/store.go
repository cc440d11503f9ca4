package wandb

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/internal/runs"
	"github.com/goart-dev/art/internal/wandbwire"
)

// Log stores trajectories and metrics in the run directory.
func (b *Backend) Log(
	ctx context.Context, m *art.Model, split string, step int, groups []*art.TrajectoryGroup, metrics map[string]float64,
) error {
	e, err := b.entry("log", m)
	if err != nil {
		return err
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if groups = runs.Present(groups); len(groups) > 0 {
		if err := e.run.WriteTrajectories(split, step, groups); err != nil {
			return err
		}
	}
	return e.run.Log(split, step, metrics)
}

// History returns the logged rows, after Close too.
func (b *Backend) History(_ context.Context, m *art.Model) ([]art.HistoryRow, error) {
	b.mu.Lock()
	e, err := b.known("history", m)
	b.mu.Unlock()
	if err != nil {
		return nil, err
	}
	return e.run.History()
}

// Checkpoints returns the steps that the service has, in ascending order.
func (b *Backend) Checkpoints(ctx context.Context, m *art.Model) ([]int, error) {
	e, err := b.entry("checkpoints", m)
	if err != nil {
		return nil, err
	}
	var steps []int
	for after := ""; ; {
		path := b.modelPath(e) + "/checkpoints?order=asc"
		if after != "" {
			path += "&after=" + url.QueryEscape(after)
		}
		var page wandbwire.Page[wandbwire.Checkpoint]
		if err := b.do(ctx, &call{method: http.MethodGet, path: path, out: &page}); err != nil {
			return nil, err
		}
		for _, c := range page.Data {
			steps, after = append(steps, c.Step), c.ID
		}
		switch {
		case !page.HasMore || len(page.Data) == 0:
			return steps, nil
		case len(steps) > maxCheckpoints:
			return nil, b.failed(path, fmt.Errorf("the service lists more than %d checkpoints", maxCheckpoints))
		}
	}
}

// maxCheckpoints bounds a list without an end.
const maxCheckpoints = 1_000_000

// DeleteCheckpoints deletes all checkpoints of the service but those to keep and the newest, also in the run directory.
func (b *Backend) DeleteCheckpoints(ctx context.Context, m *art.Model, keep []int) error {
	e, err := b.entry("delete checkpoints", m)
	if err != nil {
		return err
	}
	steps, err := b.Checkpoints(ctx, m)
	if err != nil {
		return err
	}
	newest := int(e.step.Load())
	gone := slices.DeleteFunc(steps, func(step int) bool { return step >= newest || slices.Contains(keep, step) })
	if len(gone) > 0 {
		body := wandbwire.DeleteCheckpoints{Steps: gone}
		c := &call{method: http.MethodDelete, path: b.modelPath(e) + "/checkpoints", body: body}
		if err := b.do(ctx, c); err != nil {
			return err
		}
	}
	return e.run.DeleteCheckpoints(append(slices.Clone(keep), newest))
}

// Dir returns the run directory of m.
func (b *Backend) Dir(m *art.Model) (string, error) {
	e, err := b.entry("dir", m)
	if err != nil {
		return "", err
	}
	return e.run.Dir(), nil
}
