package wandb

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/rundir"
	"github.com/goart-dev/art/internal/client"
	"github.com/goart-dev/art/internal/runs"
	"github.com/goart-dev/art/internal/wandbwire"
)

type entry struct {
	run   *runs.Run
	model wandbwire.Model
	bare  bool   // the service had no checkpoint when the model was registered: step 0 has no name of its own
	base  string // of a frozen model, which answers under this name; "" of others
	step  atomic.Int64

	training sync.Mutex // one training at a time; guards pending
	pending  string     // a training that was not waited for
}

// artifact is the name of a step at the service.
func (e *entry) artifact(step int) string {
	if e.base != "" {
		return e.base
	}
	m := &e.model
	name := wandbwire.ArtifactScheme + m.Entity + "/" + m.Project + "/" + m.Name
	if step > 0 || !e.bare {
		name += ":step" + strconv.Itoa(step)
	}
	return name
}

// artifactFile is the file of a checkpoint that says where the service has it.
const artifactFile = "wandb.json"

// write writes the file of a checkpoint.
func (e *entry) write(step int) func(dir string) error {
	return func(dir string) error {
		data, err := json.Marshal(map[string]string{"artifact": e.artifact(step), "model": e.model.ID})
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(dir, artifactFile), data, 0o644)
	}
}

// Register registers m at the service, or continues at its newest step there. What the service chooses itself, rank,
// alpha and the seed of the adapter, is not sent. A frozen model is a base model of the service, which is not asked
// before the first call. Adapter, Fork, Full, ToolFormat and what LoRA has beyond Rank and Alpha are an
// [art.ErrUnsupported].
func (b *Backend) Register(ctx context.Context, m *art.Model) (int, error) {
	opts := m.Options()
	if opts.Adapter != "" || opts.Fork != "" || opts.ToolFormat != "" || opts.Full || !client.Plain(opts.LoRA) {
		return 0, &art.Error{
			Op: "register", Err: fmt.Errorf(
				"%w: Adapter, Fork, Full, ToolFormat, or what LoRA has beyond Rank and Alpha", art.ErrUnsupported),
			Hint: "leave them out of ModelOptions",
		}
	}
	if opts.Base == "" {
		return 0, client.ErrNoBase
	}
	if b.life.Err() != nil {
		return 0, &art.Error{Op: "register", Err: art.ErrClosed, Hint: "open another backend"}
	}
	run, err := runs.Open(b.opts.Dir, opts.Project, m.Name(), &runs.Options{Logger: b.opts.Logger})
	if err != nil {
		return 0, err
	}
	e := &entry{run: run}
	step, err := b.begin(ctx, e, m.Name(), opts)
	if err == nil {
		err = b.models.Add(m, e, true)
	}
	if err != nil {
		return 0, errors.Join(err, run.Close())
	}
	return step, nil
}

// begin registers at the service, and brings the run directory to its step.
func (b *Backend) begin(ctx context.Context, e *entry, name string, opts art.ModelOptions) (int, error) {
	want := rundir.Description{
		Name: name, Project: opts.Project, Base: opts.Base, Frozen: opts.Frozen, Seed: opts.Seed, LoRA: opts.LoRA,
		Device: b.address.Host,
	}
	var have rundir.Description
	switch known, err := e.run.ReadModel(&have); {
	case err != nil:
		return 0, err
	case !known:
		if err := e.run.WriteModel(want); err != nil {
			return 0, err
		}
	case have.Base != want.Base || have.Frozen != want.Frozen:
		return 0, &art.Error{
			Op: "register", Hint: "use another model name for a new run",
			Err: fmt.Errorf("%w: the run in %s is of the base %q", art.ErrInvalid, e.run.Dir(), have.Base),
		}
	}
	body := wandbwire.CreateModel{Project: &opts.Project, Name: &name, BaseModel: opts.Base, ReturnExisting: true}
	if opts.Frozen {
		e.base = opts.Base
		return 0, nil
	}
	if b.opts.Entity != "" {
		body.Entity = &b.opts.Entity
	}
	err := b.do(ctx, &call{method: http.MethodPost, path: "preview/models", body: body, out: &e.model})
	if err != nil {
		return 0, err
	}
	if m := &e.model; m.ID == "" || m.Entity == "" || m.Name != name || m.BaseModel != opts.Base {
		return 0, &art.Error{
			Op: "register", Hint: "use another model name, or the base model of the existing one",
			Err: fmt.Errorf("%w: the answer is of the model %q, entity %q, base %q", ErrService, m.Name, m.Entity, m.BaseModel),
		}
	}
	return b.sync(ctx, e)
}

// sync asks for the newest step of the service, and notes those that the run directory lacks: of trainings that ended
// after their client.
func (b *Backend) sync(ctx context.Context, e *entry) (int, error) {
	step, stored, err := b.newest(ctx, e)
	if err != nil {
		return 0, err
	}
	e.bare = !stored
	if have := e.run.Next() - 1; have > step {
		return 0, &art.Error{
			Op: "register", Hint: "use another model name for a new run, or the service that made this one",
			Err: fmt.Errorf("%w: the run in %s is at step %d, and the service at %d", art.ErrInvalid, e.run.Dir(), have, step),
		}
	}
	if err := e.note(step); err != nil {
		return 0, err
	}
	e.step.Store(int64(step))
	return step, nil
}

// newest asks for the newest step of the service, and whether it has one.
func (b *Backend) newest(ctx context.Context, e *entry) (step int, stored bool, err error) {
	var page wandbwire.Page[wandbwire.Checkpoint]
	path := b.modelPath(e) + "/checkpoints?limit=1&order=desc"
	err = b.do(ctx, &call{method: http.MethodGet, path: path, out: &page})
	if err != nil || len(page.Data) == 0 {
		return 0, false, err
	}
	return page.Data[0].Step, true, nil
}

// note commits the steps up to one that the run directory lacks.
func (e *entry) note(step int) error {
	for next := e.run.Next(); next <= step; next++ {
		if err := e.run.Commit(next, e.write(next)); err != nil {
			return err
		}
	}
	return nil
}

// modelPath is the path of a model.
func (b *Backend) modelPath(e *entry) string { return "preview/models/" + url.PathEscape(e.model.ID) }

// Log stores trajectories and metrics in the run directory.
func (b *Backend) Log(
	ctx context.Context, m *art.Model, split string, step int, groups []*art.TrajectoryGroup, metrics map[string]float64,
) error {
	e, err := b.models.Get("log", m)
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
	e, err := b.models.Known("history", m)
	if err != nil {
		return nil, err
	}
	return e.run.History()
}

// Checkpoints returns the steps that the service has, in ascending order.
func (b *Backend) Checkpoints(ctx context.Context, m *art.Model) ([]int, error) {
	e, err := b.models.Get("checkpoints", m)
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
	e, err := b.models.Get("delete checkpoints", m)
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
	e, err := b.models.Get("dir", m)
	if err != nil {
		return "", err
	}
	return e.run.Dir(), nil
}
