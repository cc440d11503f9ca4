// Package local is the default backend of art: it samples and trains in the process that imports it, in pure Go.
//
// [Open] returns a [Backend]. Each base model has one engine, which serves the requests of all models on that base,
// each with its newest adapter. A training call computes the next adapter from the stored samples, commits it to the
// run directory, and swaps it in; requests that arrive meanwhile are answered by the previous step.
//
// # Base models
//
// "tiny" is the built-in model (package model/tiny). Any other name is a folder with config.json, model.safetensors (or
// shards), tokenizer.json and tokenizer_config.json in the format of Hugging Face; or, when there is no such folder,
// ORG/NAME or ORG/NAME@revision of a model on the hub. It is fetched once, into the cache shared with Python (package
// model/hub). Afterwards only the cache is used: a branch that moves on the hub changes nothing until `art model pull`
// fetches it. A run records the commit of its base model.
//
// # Run directory
//
// Package internal/runs describes the files. A step is atomic: a kill at any moment leaves the previous step or the new
// one, and the same program, run again, continues to the same result. Other damage is logged as a warning when the
// model is registered: damaged older checkpoints, a truncated or edited history, missing trajectories. It is an error
// where continuing would lose or mix data: the newest checkpoint is damaged, model.json is missing, or the folder has
// another version of the layout. A run whose folder is deleted or replaced while it is open can no longer be changed.
//
// The update from step k to k+1 has one row of history, of split "train" and step k: the rewards of policy k, and the
// metrics below. It is committed with checkpoint k+1, and so are the trajectories of the update. Log adds to it.
//
// # Metrics
//
// [Metrics] describes those of a training, and docs/metrics.md lists them. What adds up has its sum over the steps of
// the run too: data/cum/groups.
//
// With one mini-batch the gap is a by-product of the gradient. With more, those after the first need a forward pass
// before the first update, once for all epochs: after an update their logprobs are those of another policy.
//
// TrainSFT has loss/sft instead of the other losses, and no metrics of groups, offpolicy and gap; its row has no
// rewards. It skips single histories, and data/skipped_<reason> counts them. TrainDPO has loss/dpo in the same way, and
// measures pairs after the step: train/reward_margin and those beside it. A step of Train with nothing to train on
// has no metrics of loss, offpolicy and train, and no data/tokens_computed.
//
// An update whose loss or gradient is NaN or infinite is skipped as a whole: data/updates_skipped counts it, a warning
// is logged, and the trajectories are listed with credit.ReasonNotFinite. Metrics of the loss are of the other
// updates. When there are none, they, loss/grad_norm and train/logprob_change are absent, and the step has unchanged
// weights.
//
// A step after which the model computes numbers that are not finite, or equal logits for all tokens, is an error and
// not committed: see LearningRate.
package local

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/gomlx/compute"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/driver"
	"github.com/goart-dev/art/backend/loop"
	"github.com/goart-dev/art/backend/server"
	"github.com/goart-dev/art/grpo"
	"github.com/goart-dev/art/internal/graphx"
	"github.com/goart-dev/art/internal/plan"
)

// DefaultDir is where runs are stored when Options leaves it empty.
const DefaultDir = ".art"

// Options of [Open]. Zero values are the defaults.
type Options struct {
	// Dir is the root of all run directories. Default [DefaultDir].
	Dir string
	// Device computes: "cpu", the default, in Go (package backend/device/cpu), or any other that is registered with GoMLX.
	// A program that imports backend/device/xla has "xla:cpu", "xla:cuda" and "xla:/path/plugin.so".
	Device string
	// Replicas are the names of further devices of the same kind, such as "xla:cuda,device=1", on which each base model is
	// loaded too. Requests are shared among all devices, and a training computes micro-batches on all of them and updates
	// on the first. Slots, CacheTokens and Queue are those of each device. On equal devices the bits of a result do not
	// depend on their number. Default: none.
	Replicas []string
	// Weights is the type of the base models' matrices on the device. Norms, attention, softmax, logprobs and adapters
	// are always float32. A device that does not support a type is an error.
	//
	//	"float32"   four bytes a number, whatever the file has.
	//	"stored"    as the file has them, with the same numbers, so the bits are those of "float32": the CPU device keeps
	//	            the blocks of a GGUF file, in about the memory of the file, and bfloat16 of a file or a folder.
	//	            All other matrices are float32.
	//	"bfloat16"  rounded to two bytes. A GPU then uses its matrix units, which round the other operand as well and
	//	            accumulate in float32; the CPU device computes in float32.
	//	"int8"      on a device of XLA: the elements of a row share a scale in float32, and are multiplied as bfloat16.
	//	            It excludes DoRA.
	//
	// Default: the type that the run was started with, and of a fork that of the run that it is of; runs that did not
	// record it have "float32", and so has "stored" on a device that does not support it. A new run has "stored" for a
	// GGUF file on the CPU device, and "float32" for everything else, and where all weights are trained
	// ([art.ModelOptions].Full), which is an error with any other type. A run records the Weights and the device that it
	// was started with, and a change is logged as a warning. Models on one base that is held in two ways load it twice.
	Weights string
	// Activations is the type in which activations are multiplied by quantized matrices that are "stored": "float32" or
	// "int8": each 32 numbers are rounded to integers of 8 bits that share a scale, their largest magnitude
	// divided by 127, and products are those of integers. Many requests at once, prompts and trainings are then about
	// twice as fast, and logprobs change a little: see docs/models.md. Sampling, scoring and training round the same, so
	// their difference stays 0. Gradients go straight through the rounding; lookups of embeddings, attention, norms and
	// adapters are not rounded. It needs a GGUF file with quantized matrices and the CPU device; another base model is an
	// error of Register. Default: that of the run, and of a fork that of the run that it is of; a new run has "float32". A
	// run records it, and a change is logged as a warning.
	Activations string
	// Slots is the number of replies that are sampled at once; others wait. Default 32. Requests during a training are
	// answered by the step before. Sampling and training then share the workers of the device, of which each has one at
	// least; see TrainShare.
	Slots int
	// TrainShare is the part of the time that a training computes while requests are answered, above 0 and up to 1: after
	// each micro-batch it pauses, so that they have the cores for the rest. Default 1: it computes all the time, beside
	// them, and the system divides the cores. It does not pause while there are no requests. The result is the same, to
	// the bit.
	TrainShare float64
	// Context bounds prompt and reply together, in tokens. Default: the context of the base model, if it fits. Of a model
	// whose RoPE depends on the length of a text (LongRoPE, dynamic scaling, which it can raise above the context of the
	// model) it chooses the frequencies once, for sampling and training; see docs/models.md. The run records the choice,
	// which its default then is, and another one is an error.
	Context int
	// CacheTokens is the number of tokens whose keys and values are kept, in blocks of 32: of the replies that are being
	// sampled, and, as far as there is room, of everything before, so that conversations, the samples of a prompt and all
	// that begin with the same tokens compute them once. A reply whose blocks others need waits, and goes on later with
	// the same bits. Default: 2048 for each slot, at least Context.
	//
	// The cache is allocated up front. What does not fit into free memory (of the machine, its cgroups and GOMEMLIMIT) is
	// lowered, if it is a default: CacheTokens down to Context, Context down to 2048, then Slots, then Context again,
	// down to 256. Memory for the weights, and for training on sequences of up to 1024 tokens, is reserved; for that with
	// Recompute if it spares the lowering of Context or Slots. That is logged. Values set here are kept; if they do not
	// fit, Register returns an error. Of a GPU of NVIDIA it is what nvidia-smi reports as free when the device is opened,
	// at most the part of the whole that XLA takes (memory_fraction of its name, 0.75). Where that is not known (no
	// nvidia-smi, a divided GPU, GPUs of several kinds without CUDA_DEVICE_ORDER=PCI_BUS_ID), and on systems other than
	// Linux and macOS, the defaults fit into 8 GiB beside the weights; of a GPU a warning then says why.
	CacheTokens int
	// CacheType is the type of keys and values in the cache: "float32", or "bfloat16", to which they are rounded, on a
	// device of XLA. That halves the cache's memory and traffic, which decide how fast many sequences are decoded; queries
	// and weights of attention are rounded as well. Default: bfloat16 where the matrices are not float32 and a kernel of
	// the device computes the attention of a training, which rounds the same; else float32.
	CacheType string
	// WarmUp has Register compile the programs that requests may need, so that none waits for a compilation. On a device
	// of XLA that takes minutes; see art model inspect --device for how many there are. Models whose adapters have equal
	// layouts share them, and those of the base model and of four layouts, at least, are kept. Programs of a training are
	// not among them: they depend on its loss, and on what its sequences share. Default: each is compiled when it is first
	// needed.
	WarmUp bool
	// Queue is the number of requests that may wait for a slot, of each base model. Those beyond get [art.ErrBusy], which
	// is status 429 over HTTP. Default 0: no limit; callers wait until their context ends.
	Queue int
	// Recompute has a training compute each layer again for its gradient, in place of keeping what it has computed. That
	// takes a fraction of the memory, and a third more time; no bit of a step depends on it. Default: where a training
	// does not fit into free memory otherwise.
	Recompute bool
	// MicroTokens bounds the tokens that a training computes at once, padding included; a single sequence may have
	// more, and those that share what they begin with three times as many. By default these may also have twice the
	// tokens of the longest of them, so that long prompts are shared. The gradients of micro-batches are added up, in
	// an order of which the last bits of a step depend. Default: 256 to 4096, by the sizes of the model, or fewer where
	// even layers that are computed again do not fit into free memory. It is logged and recorded when it is lowered, so
	// that a step can be replayed.
	MicroTokens int
	// Losses are policy losses beside the built-in ones. [art.TrainConfig].Loss chooses one by the key of its spec, and
	// its metrics are stored with those of a step. Options of the built-in ones, such as Epsilon, it has itself.
	Losses []grpo.Loss
	// Rollouts records, over HTTP, what agents in other processes do; see [server.Rollouts]. Capture writes down a part of
	// the other requests; see [server.Capture]. Default: neither.
	Rollouts *server.Rollouts
	Capture  *server.Capture
	// Metrics observes requests over HTTP and is served at /metrics, with the state of the engines if it is a
	// [server.EngineMetrics]; see package backend/server/metrics. Default: none.
	Metrics server.Metrics
	// Logger receives events and warnings. nil discards.
	Logger *slog.Logger
	// Progress is where the bars of downloads and trainings are drawn, unless it is a file and no terminal, and where the
	// size of a run's steps is told when the first is stored. Default: standard error, if that is a terminal. io.Discard
	// disables both. A training of a model with [art.ModelOptions].Events has no bar.
	Progress io.Writer
}

// Backend implements [art.Backend] and all its optional interfaces.
type Backend struct {
	opts   Options
	device compute.Backend
	calls  atomic.Uint64

	replicas []compute.Backend // further devices

	memory *plan.Device
	onLoad func(ctx context.Context, path string) // for tests: called before a base model is loaded

	mu      sync.RWMutex
	closed  bool
	bases   map[baseKey]*loading
	pending map[*art.Model]bool // being registered
	models  map[*art.Model]*entry
	order   []*art.Model // of registration

	quit context.CancelCauseFunc // of life
	life context.Context         // ends with Close
	busy sync.WaitGroup          // registrations and loads in progress; incremented under mu, unless closed
}

var (
	_ art.Backend               = (*Backend)(nil)
	_ driver.Logger             = (*Backend)(nil)
	_ driver.CheckpointKeeper   = (*Backend)(nil)
	_ driver.CheckpointRestorer = (*Backend)(nil)
	_ driver.StateKeeper        = (*Backend)(nil)
	_ driver.SFTTrainer         = (*Backend)(nil)
	_ driver.DPOTrainer         = (*Backend)(nil)
	_ driver.HTTPServer         = (*Backend)(nil)
	_ driver.Tokenizer          = (*Backend)(nil)
	_ driver.Sampler            = (*Backend)(nil)
	_ driver.StepPinner         = (*Backend)(nil)
	_ driver.LossProvider       = (*Backend)(nil)
	_ driver.TrainChecker       = (*Backend)(nil)
	_ driver.BaseChooser        = (*Backend)(nil)
	_ driver.GroupChecker       = (*Backend)(nil)
	_ loop.Trainer              = (*Backend)(nil)
	_ loop.WeightsKeeper        = (*Backend)(nil)
)

// Open prepares the device. Nothing is loaded or written before a model is registered. opts may be nil. It returns
// [art.ErrInvalid] for invalid options, and [art.ErrDevice] for a device that does not exist or does not support them.
func Open(_ context.Context, opts *Options) (*Backend, error) {
	b := &Backend{bases: map[baseKey]*loading{}, pending: map[*art.Model]bool{}, models: map[*art.Model]*entry{}}
	b.life, b.quit = context.WithCancelCause(context.Background())
	if opts != nil {
		b.opts = *opts
	}
	b.opts.Dir = cmp.Or(b.opts.Dir, DefaultDir)
	if b.opts.Logger == nil {
		b.opts.Logger = slog.New(slog.DiscardHandler)
	}
	if o := b.opts; min(o.Slots, o.Context, o.CacheTokens, o.Queue, o.MicroTokens) < 0 {
		return nil, invalid("open", "use 0 for the defaults", "Slots is %d, Context %d, CacheTokens %d, Queue %d and "+
			"MicroTokens %d", o.Slots, o.Context, o.CacheTokens, o.Queue, o.MicroTokens)
	}
	if s := b.opts.TrainShare; !(s >= 0 && s <= 1) {
		return nil, invalid("open", "use a number above 0 and up to 1, or 0 for the default", "TrainShare is %v", s)
	}
	if err := checkLosses(b.opts.Losses); err != nil {
		return nil, err
	}
	device, err := openDevice(b.opts.Device)
	if err != nil {
		return nil, err
	}
	b.device = device
	for _, name := range b.opts.Replicas {
		other, err := openDevice(name)
		if err != nil {
			return nil, err
		}
		if other.Name() != device.Name() {
			return nil, invalid("open", "use Replicas of local.Options for equal devices of one host",
				"%q is a replica of a device of another kind, %q", other.Name(), device.Name())
		}
		b.replicas = append(b.replicas, other)
	}
	if err := checkHeld(&b.opts, device); err != nil {
		return nil, err
	}
	if err := checkCacheType(b.opts.CacheType, device); err != nil {
		return nil, err
	}
	b.memory = plan.NewDevice(graphx.ProfileOf(device))
	if !b.memory.Profile.OwnMemory {
		b.memory.Devices = 1 + len(b.replicas)
	}
	b.memory.Held = func() (bytes int64) {
		for _, d := range append([]compute.Backend{device}, b.replicas...) {
			bytes += graphx.HeldBytes(d)
		}
		return bytes
	}
	if m, ok := b.opts.Metrics.(server.EngineMetrics); ok {
		m.Watch(b.engines)
	}
	b.opts.Logger.Info("device", "name", b.Device())
	b.measureGPUs()
	return b, nil
}

// Device describes the device.
func (b *Backend) Device() string { return b.device.Description() }

// Close ends all requests and releases the run directories. It waits for a training call in progress. A registration in
// progress is cancelled, which takes at most as long as reading a tensor or a file.
func (b *Backend) Close() error {
	b.mu.Lock()
	if b.closed {
		b.mu.Unlock()
		return nil
	}
	b.closed = true
	b.mu.Unlock()
	b.quit(&art.Error{Op: "register", Err: art.ErrClosed})
	b.busy.Wait()
	for _, l := range b.bases {
		l.base.close(b.memory)
	}
	var errs []error
	for _, e := range b.models {
		errs = append(errs, e.close())
	}
	return errors.Join(errs...)
}

// invalid is an error of the caller.
func invalid(op, hint, format string, args ...any) error {
	return &art.Error{Op: op, Err: fmt.Errorf("%w: %w", art.ErrInvalid, fmt.Errorf(format, args...)), Hint: hint}
}

// entry returns what was registered for m.
func (b *Backend) entry(op string, m *art.Model) (*entry, error) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	if b.closed {
		return nil, &art.Error{Op: op, Err: art.ErrClosed}
	}
	return b.known(op, m)
}

// known is entry of a backend that may be closed. b.mu is held.
func (b *Backend) known(op string, m *art.Model) (*entry, error) {
	e := b.models[m]
	if e == nil {
		return nil, &art.Error{Op: op, Err: art.ErrNotRegistered, Hint: "call Register on this backend first"}
	}
	return e, nil
}

// Handler serves all registered models under their names. opts may be nil, which serves programs that reach it as
// localhost, or at the address that it listens on, and refuses requests from web pages. It requires no key unless
// opts.Keys has one: the address that the server listens on then decides who can reach it.
//
//	handler, err := backend.Handler(&art.HandlerOptions{Keys: []string{key}, Hosts: []string{"gpu-box"}})
//	server := &http.Server{Addr: ":8080", Handler: handler, ReadHeaderTimeout: 10 * time.Second}
//
// The request must be of type application/json, and is of [art.HandlerOptions].MaxBody bytes at most. A refused request
// gets an error in OpenAI's format that says what to do: status 401 for a key, 403 for a host or an origin, 408 for a
// body that does not arrive, 413 for one that is too large, 415 for another type, 503 for too many at once.
func (b *Backend) Handler(opts *art.HandlerOptions) (http.Handler, error) {
	return server.Handler(b.registered, b.serverConfig(), opts)
}

// Transport answers as m, whatever model a request names.
func (b *Backend) Transport(m *art.Model) http.RoundTripper {
	only := func() []*art.Model { return []*art.Model{m} }
	return server.Transport(server.Routes(only, b.serverConfig()), m.Name())
}

// serverConfig is the configuration of both.
func (b *Backend) serverConfig() *server.Config {
	return &server.Config{
		Rollouts: b.opts.Rollouts, Capture: b.opts.Capture, Metrics: b.opts.Metrics, Logger: b.opts.Logger,
	}
}

func (b *Backend) registered() []*art.Model {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return slices.Clone(b.order)
}
