package local

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gomlx/gomlx/core/tensors"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/internal/engine"
	"github.com/goart-dev/art/internal/graphx"
	"github.com/goart-dev/art/internal/plan"
	"github.com/goart-dev/art/internal/runs"
	"github.com/goart-dev/art/internal/trainer"
	"github.com/goart-dev/art/lora"
	"github.com/goart-dev/art/model"
	"github.com/goart-dev/art/model/tiny"
	"github.com/goart-dev/art/tokenizer/chat"
)

// entry is a registered model.
type entry struct {
	base     *base
	template *chat.Template
	run      *runs.Run // nil for a snapshot
	grammars *grammars
	serving  atomic.Pointer[serving]
	pinned   pinnedSteps

	training sync.Mutex // one training call at a time; guards the fields below
	policy   policy
	state    *trainer.State
	trainer  *trainer.Trainer
	own      ownState
	leftOut  int // histories of Validation that a warning told of
	// committed is when the newest step was, or when the model was registered.
	committed time.Time
	sized     bool // it was said how large a step is
}

// serving is the step that answers new requests. adapter is nil for a frozen model.
type serving struct {
	step    int
	adapter *engine.Adapter
}

// Register loads the base model, opens the run directory and continues at its newest checkpoint. A new run commits step
// 0, a zero-initialised adapter. Other models stay usable meanwhile, and models on one base share its load. When ctx
// ends it returns its error, and [art.ErrClosed] after Close.
func (b *Backend) Register(ctx context.Context, m *art.Model) (int, error) {
	if err := b.begin(ctx, m); err != nil {
		return 0, err
	}
	defer b.end(m)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(b.life, func() { cancel(context.Cause(b.life)) })()
	opts := m.Options()
	opts.Base = baseName(m)
	at, err := b.locate(ctx, opts.Base)
	if err != nil {
		return 0, registerError(ctx, err)
	}
	held, err := b.heldOf(m.Name(), opts, at)
	if err != nil {
		return 0, err
	}
	s, err := b.base(ctx, opts.Base, held)
	if err != nil {
		return 0, registerError(ctx, err)
	}
	template, err := s.template.With(chat.Options{ToolFormat: opts.ToolFormat})
	if err != nil {
		return 0, invalid("register", "correct ModelOptions.ToolFormat", "%w", err)
	}
	for _, warning := range template.Warnings() {
		b.opts.Logger.Warn("not all replies to the chat template can be parsed", "model", m.Name(), "template", warning)
	}
	run, err := runs.Open(b.opts.Dir, opts.Project, m.Name(), &runs.Options{Logger: b.opts.Logger})
	if err != nil {
		return 0, err
	}
	e := &entry{base: s, template: template, run: run, grammars: newGrammars(s, template), committed: time.Now()}
	step, err := e.resume(b, m.Name(), opts, at)
	if err != nil {
		_ = run.Close() // the first error is the one to return
		return 0, registerError(ctx, err)
	}
	if err := b.warmUp(ctx, m.Name(), e); err != nil {
		return 0, errors.Join(registerError(ctx, err), run.Close())
	}
	if err := b.add(m, e); err != nil {
		return 0, errors.Join(err, run.Close())
	}
	b.opts.Logger.Info("model registered", "model", m.Name(), "step", step, "dir", run.Dir())
	return step, nil
}

// DefaultBase returns the name of the built-in model.
func (b *Backend) DefaultBase(*art.Model) string { return tiny.Name }

// baseName is the base model of m, by the name that a run stores.
func baseName(m *art.Model) string { return cmp.Or(m.Options().Base, tiny.Name) }

// warmUp compiles the programs that answer a model, if Options.WarmUp says so. Models of one layout share them.
func (b *Backend) warmUp(ctx context.Context, name string, e *entry) error {
	if !b.opts.WarmUp {
		return nil
	}
	start := time.Now()
	if err := e.base.engine.Warm(ctx, e.serving.Load().adapter); err != nil {
		return &art.Error{Op: "register", Err: deviceError(err)}
	}
	programs, _ := graphx.Compiled(b.device)
	b.opts.Logger.Info("programs compiled", "model", name, "seconds", time.Since(start).Seconds(),
		"of the device so far", programs)
	return nil
}

// begin reserves a model for a registration.
func (b *Backend) begin(ctx context.Context, m *art.Model) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.closed:
		return &art.Error{Op: "register", Err: art.ErrClosed}
	case b.models[m] != nil, b.pending[m]:
		return invalid("register", "", "model %q is registered already", m.Name())
	}
	b.pending[m] = true
	b.busy.Add(1)
	return nil
}

// add registers a model.
func (b *Backend) add(m *art.Model, e *entry) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return &art.Error{Op: "register", Err: art.ErrClosed}
	}
	b.models[m] = e
	b.order = append(b.order, m)
	return nil
}

// end ends a registration, successful or not.
func (b *Backend) end(m *art.Model) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.pending, m)
	b.busy.Done()
}

// registerError returns the cause of ctx if it has ended, and err otherwise.
func registerError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// resume checks that the options match the run, and loads its newest checkpoint.
func (e *entry) resume(b *Backend, name string, opts art.ModelOptions, at location) (int, error) {
	fresh := opts.Adapter == "" && opts.Fork == "" && !opts.Full
	if fresh && len(opts.LoRA.Targets) == 0 && opts.LoRA.TargetPattern == "" {
		opts.LoRA.Targets = lora.TargetsOf(layersOf(e.base.config))
	}
	digest, err := at.digest()
	if err != nil {
		return 0, err
	}
	want := description{
		Name: name, Project: opts.Project, Base: opts.Base, Commit: at.commit, SHA256: digest, Frozen: opts.Frozen,
		LoRA: opts.LoRA, Adapter: opts.Adapter, Fork: opts.Fork, Full: opts.Full, Seed: opts.Seed,
		Device:  fmt.Sprintf("%s, %s, %s/%s", b.Device(), runtime.Version(), runtime.GOOS, runtime.GOARCH),
		Weights: e.base.weights, Activations: e.base.activations, RopeContext: e.base.ropeContext,
	}
	var have description
	known, err := e.run.ReadModel(&have)
	if err != nil {
		return 0, err
	}
	start, err := b.openStart(opts, have, want, e.base)
	if err != nil {
		return 0, err
	}
	want.AdapterSHA256 = start.digest
	// A trainable run without a checkpoint never started: its first Register failed after model.json was written.
	if _, started := e.run.Latest(); known && (started || have.Frozen) {
		if err := have.check(want, e.run.Dir()); err != nil {
			return 0, err
		}
		have.warnChanges(want, b.opts.Logger)
		have.Weights = have.weights()
		if err := e.run.Migrate(have); err != nil {
			return 0, err
		}
	} else if err := e.run.WriteModel(want); err != nil {
		return 0, err
	}
	if opts.Frozen {
		e.serving.Store(&serving{})
		return 0, nil
	}
	return e.start(b, opts, start)
}

// start loads the newest checkpoint, or commits the first.
func (e *entry) start(b *Backend, opts art.ModelOptions, from adapterStart) (int, error) {
	step, ok := e.run.Latest()
	dir, _ := e.run.Checkpoint(step)
	if opts.Full || from.policy.full() || ok && isFull(dir) {
		if err := b.checkFull(e.base); err != nil { // before the weights are read
			return 0, err
		}
	}
	var err error
	if ok {
		if e.policy, e.state, err = readCheckpoint(dir, e.base); err != nil {
			return 0, checkpointError("register", dir, err)
		}
	} else {
		p, err := e.firstPolicy(b, opts, from)
		if err == nil {
			e.policy, e.state, err = p.begin()
		}
		if err != nil {
			return 0, err
		}
		write := e.writeCheckpoint(opts.Base)
		if from.checkpoint != "" && hasOptimizer(from.checkpoint) {
			if err := readOptimizer(from.checkpoint, e.state); err != nil {
				return 0, checkpointError("register", from.checkpoint, err)
			}
			write = runs.CopyCheckpoint(from.checkpoint)
		}
		if err := e.run.Commit(0, write); err != nil {
			return 0, err
		}
	}
	onDevice, err := e.policy.upload(e.base)
	if err != nil {
		return 0, err
	}
	e.serving.Store(&serving{step: step, adapter: onDevice})
	return step, nil
}

// firstPolicy returns the policy of step 0: the base model, an adapter that changes nothing, or that of a folder.
func (e *entry) firstPolicy(b *Backend, opts art.ModelOptions, from adapterStart) (policy, error) {
	layers := layersOf(e.base.config)
	switch adapter := from.policy.adapter; {
	case opts.Full:
		return baseWeights(e.base)
	case from.policy.full():
		return from.policy, nil
	case opts.Adapter == "" && opts.Fork == "":
		a, err := b.newAdapter(e.base.config, layers, opts)
		if err != nil {
			return policy{}, invalid("register", "correct ModelOptions.LoRA", "%w", err)
		}
		return policy{adapter: a}, a.InitMagnitudes(b.device, func(layer string) *tensors.Tensor {
			return e.base.params.Weight(e.base.config, layer)
		})
	case adapter != nil:
		if err := adapter.Check(layers); err != nil {
			return policy{}, adapterError(err)
		}
		return from.policy, nil
	case opts.Fork != "": // the run stopped before its first checkpoint, and the folder or the run is gone
		return policy{}, invalid("register", "use another model name for a new run",
			"the run has no step yet, and is a fork of %s", opts.Fork)
	}
	_, err := lora.Load(opts.Adapter)
	return policy{}, adapterError(err)
}

// newAdapter returns an adapter that changes nothing, unless its copies in training do not fit into free memory.
func (b *Backend) newAdapter(c *model.Config, layers []lora.LayerShape, opts art.ModelOptions) (*lora.Adapter, error) {
	l := opts.LoRA
	config := lora.Config{Rank: l.Rank, Alpha: l.Alpha, Targets: l.Targets, Pattern: l.TargetPattern,
		RankStabilized: l.RankStabilized, DoRA: l.DoRA, Ranks: l.Ranks, Alphas: l.Alphas}
	selected, err := config.Select(layers)
	if err != nil {
		return nil, err
	}
	params := 0.0
	for _, s := range selected {
		params += plan.AdapterParams(s, config.LayerRank(s.Name))
		if config.DoRA {
			params += float64(s.Out)
		}
	}
	if takes, free, ok := b.memory.Holds(plan.Training{Config: c, Params: params}); !ok {
		return nil, fmt.Errorf("an adapter of %.0f parameters takes %s in training; %s are free: lower the rank",
			params, gigabytes(takes), gigabytes(free))
	}
	return lora.New(config, layers, opts.Seed)
}

// layersOf are the layers of a base model that an adapter may attach to.
func layersOf(c *model.Config) []lora.LayerShape {
	var out []lora.LayerShape
	for _, l := range c.Adaptable() {
		out = append(out, lora.LayerShape(l))
	}
	return out
}
