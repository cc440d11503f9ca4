package local

import (
	"context"
	"fmt"
	"log/slog"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/gomlx/compute"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/internal/engine"
	"github.com/goart-dev/art/internal/runs"
	"github.com/goart-dev/art/internal/trainer"
	"github.com/goart-dev/art/lora"
	"github.com/goart-dev/art/model/hub"
	"github.com/goart-dev/art/tokenizer"
)

// entry is a registered model.
type entry struct {
	base     *base
	template *tokenizer.Template
	run      *runs.Run
	serving  atomic.Pointer[serving]

	training sync.Mutex // one training call at a time; guards the fields below
	adapter  *lora.Adapter
	state    *trainer.State
	trainer  *trainer.Trainer
}

// serving is what answers new requests. adapter is nil for a frozen model.
type serving struct {
	step    int
	adapter *engine.Adapter
}

// description is model.json: what a run cannot change on the way.
type description struct {
	Name    string   `json:"name"`
	Project string   `json:"project"`
	Base    string   `json:"base"`
	Commit  string   `json:"commit,omitempty"` // of a base from the hub
	SHA256  string   `json:"sha256,omitempty"` // of a base that is a file
	Frozen  bool     `json:"frozen"`
	LoRA    art.LoRA `json:"lora"`
	Adapter string   `json:"adapter,omitempty"` // that it began with, in place of LoRA
	Seed    uint64   `json:"seed"`
	// Device tells where the run was begun. Results repeat bit for bit on the same kind only.
	Device string `json:"device"`
	// Weights is the type of the base's matrices, as Options.Weights has it, where the run was begun.
	Weights string `json:"weights,omitempty"`
}

// Register loads the base model, opens the run directory and continues at its newest checkpoint. A new run commits
// step 0, the adapter that changes nothing.
func (b *Backend) Register(ctx context.Context, m *art.Model) (int, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	opts := m.Options()
	at, err := b.locate(ctx, opts.Base) // without the lock: it may take long
	if err != nil {
		return 0, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return 0, &art.Error{Op: "register", Err: art.ErrClosed}
	}
	if b.models[m] != nil {
		return 0, &art.Error{Op: "register", Err: fmt.Errorf("%w: model %q is registered already", art.ErrInvalid, m.Name())}
	}
	s, err := b.base(opts.Base, at)
	if err != nil {
		return 0, err
	}
	template, err := b.templateOf(s, m)
	if err != nil {
		return 0, err
	}
	run, err := runs.Open(b.opts.Dir, opts.Project, m.Name(), &runs.Options{Logger: b.opts.Logger})
	if err != nil {
		return 0, err
	}
	e := &entry{base: s, template: template, run: run}
	step, err := e.resume(b, m.Name(), opts, at)
	if err != nil {
		_ = run.Close() // the first error is the one to tell
		return 0, err
	}
	b.models[m] = e
	b.order = append(b.order, m)
	b.opts.Logger.Info("model registered", "model", m.Name(), "step", step, "dir", run.Dir())
	return step, nil
}

// resume checks that the run is the one described, and takes up its newest checkpoint.
func (e *entry) resume(b *Backend, name string, opts art.ModelOptions, at place) (int, error) {
	want := description{
		Name: name, Project: opts.Project, Base: opts.Base, Commit: at.commit, SHA256: at.digest, Frozen: opts.Frozen, LoRA: opts.LoRA, Adapter: opts.Adapter, Seed: opts.Seed,
		Device:  fmt.Sprintf("%s, %s, %s/%s", b.Device(), runtime.Version(), runtime.GOOS, runtime.GOARCH),
		Weights: strings.ToLower(b.matrices.String()),
	}
	var have description
	known, err := e.run.ReadModel(&have)
	if err != nil {
		return 0, err
	}
	if known {
		if err := have.check(want, e.run.Dir()); err != nil {
			return 0, err
		}
		have.tellChanges(want, b.opts.Logger)
	} else if err := e.run.WriteModel(want); err != nil {
		return 0, err
	}
	if opts.Frozen {
		e.serving.Store(&serving{})
		return 0, nil
	}
	return e.start(b.device, opts)
}

// tellChanges warns of what a run may change on the way, and its results with it.
func (d description) tellChanges(now description, log *slog.Logger) {
	if d.Device != now.Device {
		log.Warn("the run goes on with another device", "model", d.Name, "begun", d.Device, "now", now.Device)
	}
	if d.Weights != "" && d.Weights != now.Weights { // "" in runs that did not record it
		log.Warn("the run goes on with another type of weights", "model", d.Name, "begun", d.Weights, "now", now.Weights)
	}
}

// check reports a model that is not the one that the run in dir was made with.
func (d description) check(want description, dir string) error {
	if d.Commit != "" && d.Commit == want.Commit || d.SHA256 != "" && d.SHA256 == want.SHA256 {
		d.Base = want.Base // a branch and its commit, or two paths, are names of one model
	}
	d.Device, want.Device, d.Weights, want.Weights = "", "", "", ""
	if reflect.DeepEqual(d, want) {
		return nil
	}
	hint := "use another model name for a new run, or the options of the old one to continue it"
	if n, err := hub.ParseName(d.Base); err == nil && d.Commit != want.Commit && d.Commit != "" {
		hint = fmt.Sprintf("set Base to %q to continue with the weights of the run", n.Repo+"@"+d.Commit)
	}
	return &art.Error{
		Op: "register", Hint: hint,
		Err: fmt.Errorf("%w: the run in %s was made with %+v, the model asks for %+v", art.ErrInvalid, dir, d, want),
	}
}

// start loads the newest checkpoint, or commits the first.
func (e *entry) start(device compute.Backend, opts art.ModelOptions) (int, error) {
	step, ok := e.run.Latest()
	if !ok {
		a, err := e.firstAdapter(opts)
		if err != nil {
			return 0, err
		}
		e.adapter, e.state = a, trainer.AdapterState(a)
		if err := e.run.Commit(0, e.writeCheckpoint(opts.Base)); err != nil {
			return 0, err
		}
	} else if err := e.load(step); err != nil {
		return 0, err
	}
	onDevice, err := engine.NewAdapter(device, e.adapter)
	if err != nil {
		return 0, err
	}
	e.serving.Store(&serving{step: step, adapter: onDevice})
	return step, nil
}

// firstAdapter returns what a new run begins with: an adapter that changes nothing, or the one of a folder.
func (e *entry) firstAdapter(opts art.ModelOptions) (a *lora.Adapter, err error) {
	hint := "correct ModelOptions.LoRA"
	if opts.Adapter == "" {
		a, err = lora.New(lora.Config{Rank: opts.LoRA.Rank, Alpha: opts.LoRA.Alpha, Targets: opts.LoRA.Targets}, e.layers(), opts.Seed)
	} else {
		hint = "set ModelOptions.Adapter to the folder of a LoRA adapter of this base model"
		if a, err = lora.Load(opts.Adapter); err == nil {
			err = a.Check(e.layers())
		}
	}
	if err != nil {
		return nil, &art.Error{Op: "register", Err: fmt.Errorf("%w: %w", art.ErrInvalid, err), Hint: hint}
	}
	return a, nil
}

// layers are the linear layers of the base.
func (e *entry) layers() []lora.LayerShape {
	var out []lora.LayerShape
	for _, l := range e.base.config.Linears() {
		out = append(out, lora.LayerShape(l))
	}
	return out
}
