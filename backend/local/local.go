package local

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"

	"github.com/goart-dev/art"
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
	// Weights is the type of the base models' matrices on the device: "float32", the default, or "bfloat16", to which they
	// are rounded: half the memory, half the bytes to read for a token, and products at the speed of a GPU's matrix units,
	// which round their other side as well and sum up in float32. On the CPU device all else is float32. Norms, attention,
	// softmax, logprobs and adapters are in any case. It is an error for a device that cannot do it. A run records what it
	// was begun with; one that goes on with another Weights, or another device, is told to Logger.
	Weights string
	// Slots is the number of conversations that are computed at once, and whose caches are kept. Default 32. A little
	// more than the concurrency of the rollouts lets every conversation keep its cache between turns.
	//
	// The cache of all slots is allocated at once. Where 32 slots of the base model's context do not fit into the memory
	// that is free (of the machine, its cgroups and GOMEMLIMIT), the defaults of Slots and Context are lowered: Context is
	// halved, down to 2048, then Slots, then Context again, down to 256. Weights, and training on sequences of up to 1024
	// tokens, have their memory. Logger is told. What is set here is kept, or is an error of Register when it does not
	// fit. How much memory is free is not known of a GPU, nor on other systems than Linux and macOS: the defaults then fit
	// into 8 GiB beside the weights.
	Slots int
	// Context bounds prompt and reply together, in tokens. Default: what the base model was made for, where it fits: see
	// Slots. Less is faster.
	Context int
	// Logger is told what happens. nil discards.
	Logger *slog.Logger
	// Progress is where progress bars are drawn. Default: standard error, when that is a terminal. io.Discard is silent.
	Progress io.Writer
}

// Backend implements [art.Backend], [art.Logger], [art.CheckpointKeeper], [art.SFTTrainer] and [art.HTTPServer].
type Backend struct {
	opts   Options
	device compute.Backend
	calls  atomic.Uint64

	matrices dtypes.DType // of base models

	memory *memory
	onLoad func(ctx context.Context, path string) // for tests: called before a base model is loaded

	mu      sync.RWMutex
	closed  bool
	bases   map[string]*loading // by path
	pending map[*art.Model]bool // being registered
	models  map[*art.Model]*entry
	order   []*art.Model // of registration

	quit context.CancelCauseFunc // of life
	life context.Context         // ends with Close
	busy sync.WaitGroup          // registrations and loads under way; counted up under mu, unless closed
}

var (
	_ art.Backend          = (*Backend)(nil)
	_ art.Logger           = (*Backend)(nil)
	_ art.CheckpointKeeper = (*Backend)(nil)
	_ art.SFTTrainer       = (*Backend)(nil)
	_ art.HTTPServer       = (*Backend)(nil)
)

// Open prepares the device. Nothing is loaded or written before a model is registered. opts may be nil. It returns
// [art.ErrInvalid] for options that make no sense, and [art.ErrDevice] for a device that is not there or cannot do what
// they ask.
func Open(_ context.Context, opts *Options) (*Backend, error) {
	b := &Backend{bases: map[string]*loading{}, pending: map[*art.Model]bool{}, models: map[*art.Model]*entry{}}
	b.life, b.quit = context.WithCancelCause(context.Background())
	if opts != nil {
		b.opts = *opts
	}
	b.opts.Dir = cmp.Or(b.opts.Dir, DefaultDir)
	if b.opts.Logger == nil {
		b.opts.Logger = slog.New(slog.DiscardHandler)
	}
	if b.opts.Slots < 0 || b.opts.Context < 0 {
		return nil, &art.Error{Op: "open", Err: fmt.Errorf("%w: Slots is %d and Context %d", art.ErrInvalid, b.opts.Slots, b.opts.Context), Hint: "use 0 for the defaults"}
	}
	device, err := openDevice(b.opts.Device)
	if err != nil {
		return nil, err
	}
	b.device = device
	if b.matrices, err = matricesOf(b.opts.Weights, device); err != nil {
		return nil, err
	}
	b.memory = newMemory(b.opts.Device, compilesSlowly(device))
	b.opts.Logger.Info("device", "name", b.Device())
	return b, nil
}

// Device says what computes.
func (b *Backend) Device() string { return b.device.Description() }

// Close ends all requests and releases the run directories. It waits for a training call that is under way. A model
// that is being registered is given up, which takes as long as a tensor or a file is read.
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
		e.training.Lock()
		errs = append(errs, e.run.Close())
		e.training.Unlock()
	}
	return errors.Join(errs...)
}

// entry returns what was registered for m.
func (b *Backend) entry(op string, m *art.Model) (*entry, error) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	if b.closed {
		return nil, &art.Error{Op: op, Err: art.ErrClosed}
	}
	e := b.models[m]
	if e == nil {
		return nil, &art.Error{Op: op, Err: art.ErrNotRegistered, Hint: "call Register on this backend first"}
	}
	return e, nil
}
