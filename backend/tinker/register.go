package tinker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/rundir"
	"github.com/goart-dev/art/internal/client"
	"github.com/goart-dev/art/internal/runs"
	"github.com/goart-dev/art/internal/tinkerwire"
	"github.com/goart-dev/art/tokenizer"
	"github.com/goart-dev/art/tokenizer/chat"
)

type entry struct {
	tokenizer *tokenizer.Tokenizer
	template  *chat.Template
	run       *runs.Run // nil of a snapshot
	base      string
	serving   atomic.Pointer[serving]

	training sync.Mutex // guards what follows: one operation at a time
	model    string     // training run
	seq      int        // seq_id of the newest operation
	lost     error      // an operation whose outcome is not known
	changed  bool       // the training state is not the newest step
	learning bool       // a training call changes it
}

// serving is the sampler of the step that answers requests.
type serving struct {
	step    int
	sampler string
	seq     atomic.Int64 // of samples
}

// pathFile is the file of a checkpoint that says where the service has it.
const pathFile = "tinker.json"

// remote is the content of pathFile.
type remote struct {
	Path  string `json:"path"`  // of the weights with the optimizer; "" of step 0, which is made again from the seed
	Model string `json:"model"` // the training run that has saved them
}

// Register creates a training run of the service for m, or continues at the newest step of its run directory, with its
// optimizer. Options of models in process, Adapter, Fork, Full, ToolFormat and what LoRA has beyond Rank and Alpha, are
// an [art.ErrUnsupported], and so is Retention: delete checkpoints at the service. The service chooses alpha itself.
func (b *Backend) Register(ctx context.Context, m *art.Model) (int, error) {
	opts := m.Options()
	if opts.Adapter != "" || opts.Fork != "" || opts.ToolFormat != "" || opts.Frozen || opts.Full ||
		!client.Plain(opts.LoRA) {
		return 0, &art.Error{
			Op: "register", Err: fmt.Errorf(
				"%w: Adapter, Fork, Full, ToolFormat, Frozen, or what LoRA has beyond Rank and Alpha", art.ErrUnsupported),
			Hint: "leave them out of ModelOptions",
		}
	}
	if opts.Base == "" {
		return 0, client.ErrNoBase
	}
	e := &entry{base: opts.Base}
	var err error
	if e.tokenizer, err = tokenizer.Load(b.opts.Tokenizer); err == nil {
		e.template, err = chat.New(e.tokenizer, "")
	}
	if err != nil {
		return 0, &art.Error{
			Op: "register", Err: fmt.Errorf("%w: %w", art.ErrBaseModel, err),
			Hint: "Options.Tokenizer is the folder with the tokenizer of the base model",
		}
	}
	if e.run, err = runs.Open(b.opts.Dir, opts.Project, m.Name(), &runs.Options{Logger: b.opts.Logger}); err != nil {
		return 0, err
	}
	step, err := b.resume(ctx, e, m.Name(), opts)
	if err == nil {
		err = b.models.Add(m, e, true)
	}
	if err != nil {
		return 0, errors.Join(err, e.run.Close())
	}
	return step, nil
}

// resume compares the run with the options, and makes the training run and its sampler.
func (b *Backend) resume(ctx context.Context, e *entry, name string, opts art.ModelOptions) (int, error) {
	var have rundir.Description
	switch known, err := e.run.ReadModel(&have); {
	case err != nil:
		return 0, err
	case !known:
		if err := e.run.WriteModel(rundir.Description{
			Name: name, Project: opts.Project, Base: opts.Base, Seed: opts.Seed, LoRA: opts.LoRA, Device: b.address.Host,
		}); err != nil {
			return 0, err
		}
	case have.Base != opts.Base || have.LoRA.Rank != opts.LoRA.Rank:
		return 0, &art.Error{
			Op: "register", Hint: "use another model name for a new run", Err: fmt.Errorf(
				"%w: the run in %s is of rank %d on base %q", art.ErrInvalid, e.run.Dir(), have.LoRA.Rank, have.Base),
		}
	}
	if err := b.createModel(ctx, e, opts); err != nil {
		return 0, err
	}
	step, ok := e.run.Latest()
	if !ok {
		return 0, errors.Join(e.run.Commit(0, remote{Model: e.model}.write), b.serve(ctx, e, 0))
	}
	if err := b.loadStep(ctx, e, step); err != nil {
		return 0, err
	}
	return step, b.serve(ctx, e, step)
}

// loadStep loads what a step of the run directory stands for.
func (b *Backend) loadStep(ctx context.Context, e *entry, step int) error {
	at, err := e.remote(step)
	if err != nil || at.Path == "" { // step 0 is what a training run begins with
		return err
	}
	// A service may load weights of another base model without a word. One without this route, or without the weights, is
	// asked to load them, and says so itself.
	var info tinkerwire.WeightsInfo
	if err := b.optional(b.post(ctx, "weights_info", request{TinkerPath: at.Path}, &info)); err != nil {
		return err
	}
	if info.BaseModel != "" && info.BaseModel != e.base {
		return &art.Error{
			Op: "register", Err: fmt.Errorf(
				"%w: the service has the checkpoint %s for the base model %q, and the model is one of %q",
				art.ErrBaseModel, at.Path, info.BaseModel, e.base),
			Hint: "use the service that the run was made with, or another model name for a new run",
		}
	}
	return b.load(ctx, e, at.Path, true)
}

// beginStep returns the entry of a model for a training call from its newest step, with its lock for trainings taken.
// After a call that was interrupted there is a new training run at the service, which continues at the newest step.
func (b *Backend) beginStep(ctx context.Context, op string, m *art.Model) (*entry, error) {
	e, err := b.trainable(op, m)
	if err != nil {
		return nil, err
	}
	e.training.Lock()
	switch {
	case e.lost != nil || e.learning && e.changed:
		err = b.restart(ctx, e, m.Options())
	case e.changed:
		err = &art.Error{
			Op: op, Err: fmt.Errorf("%w: the training state has updates or gradients that are not published", art.ErrInvalid),
			Hint: "call Model.Publish, or register the model again to drop them",
		}
	}
	if err != nil {
		e.training.Unlock()
		return nil, err
	}
	e.learning = true
	return e, nil
}

// restart makes another training run, at the newest step. e.training is held.
func (b *Backend) restart(ctx context.Context, e *entry, opts art.ModelOptions) error {
	e.seq, e.lost = 0, nil
	err := b.createModel(ctx, e, opts)
	if err == nil {
		err = b.loadStep(ctx, e, e.serving.Load().step)
	}
	if err != nil {
		e.lost = err
		return err
	}
	e.changed = false
	b.opts.Logger.Info("training run was made again", "model", e.model, "step", e.serving.Load().step)
	return nil
}

func (b *Backend) createModel(ctx context.Context, e *entry, opts art.ModelOptions) error {
	if _, ok := b.limits.contexts[opts.Base]; !ok && len(b.limits.contexts) > 0 {
		return &art.Error{
			Op: "register", Err: fmt.Errorf("%w: the service has no base model %q", art.ErrBaseModel, opts.Base),
			Hint: "it has " + strings.Join(slices.Sorted(maps.Keys(b.limits.contexts)), ", "),
		}
	}
	n := int(b.created.Add(1)) - 1
	out, err := b.small(ctx, "create_model", request{
		SessionID: b.session, ModelSeqID: &n, BaseModel: opts.Base, Type: "create_model",
		LoRA: &tinkerwire.LoRAConfig{Rank: opts.LoRA.Rank, Seed: new(b.limits.seed(opts.Seed))},
	})
	if err == nil && out.ModelID == "" {
		err = b.broken("create_model", errors.New("the result has no model_id"))
	}
	e.model = out.ModelID
	return err
}

// write writes the file of a checkpoint that names what the service has saved.
func (at remote) write(dir string) error {
	return os.WriteFile(filepath.Join(dir, pathFile), encode(at), 0o644)
}

// remote reads the file of a checkpoint.
func (e *entry) remote(step int) (at remote, err error) {
	dir, ok := e.run.Checkpoint(step)
	if !ok {
		return at, &art.Error{Op: "load weights", Err: fmt.Errorf("%w: step %d is not stored", art.ErrInvalid, step)}
	}
	data, err := os.ReadFile(filepath.Join(dir, pathFile))
	if err == nil {
		err = json.Unmarshal(data, &at)
	}
	if err != nil {
		return at, &art.Error{
			Op: "register", Err: fmt.Errorf("%w: %w", art.ErrCorrupt, err), Hint: "the run was not made by backend/tinker",
		}
	}
	return at, nil
}

// serve makes a sampler of the training state, which answers as a step.
func (b *Backend) serve(ctx context.Context, e *entry, step int) error {
	id, err := b.ephemeral(ctx, e)
	if err == nil {
		e.serving.Store(&serving{step: step, sampler: id})
	}
	return err
}

// ephemeral makes a sampler of the training state.
func (b *Backend) ephemeral(ctx context.Context, e *entry) (id string, err error) {
	var out result
	err = e.ordered(false, func(seq int) (err error) {
		out, err = b.small(ctx, "save_weights_for_sampler", request{
			ModelID: e.model, SeqID: seq, SamplingSessionSeqID: new(int(b.samplers.Add(1)) - 1), Kind: "snapshot",
			Type: "save_weights_for_sampler",
		})
		return err
	})
	if err == nil && out.SamplingSessionID == "" {
		err = b.broken("save_weights_for_sampler", errors.New("the result has no sampling_session_id"))
	}
	return out.SamplingSessionID, err
}

// ordered calls f with the next number of an operation. No other can follow one whose outcome is not known, since the
// service may wait for it, and one that has failed and changes the training state: how far it came is not known.
func (e *entry) ordered(changes bool, f func(seq int) error) error {
	if e.lost != nil {
		return &art.Error{
			Op: "train", Err: fmt.Errorf("%w: an operation before was interrupted: %w", ErrService, e.lost),
			Hint: "register the model again, which continues at its newest step",
		}
	}
	e.seq++
	err := f(e.seq)
	var answered *failure
	switch known := errors.As(err, &answered); {
	case err == nil:
	case known && !answered.begun:
		e.seq--
	case known && (!changes || errors.Is(err, art.ErrInvalid)):
	default:
		e.lost = err
	}
	return err
}
