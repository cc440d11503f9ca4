// Package engine samples completions from one base model with any of several adapters, many at once (continuous
// batching).
//
// Requests join and leave a running batch. Their keys and values are in blocks of one cache, which grow with what they
// compute, and stay after a reply until others need the memory: the next turn of a conversation computes only what is
// new, and what requests begin with in common is computed once. If the cache is full, requests wait, the youngest ones
// also while they run.
//
// One goroutine, the loop, owns the device. Package schedule decides which request runs, in which blocks, and what each
// round computes; the loop samples and answers, and the runner compiles and runs the graphs. A round is one call of the
// device for requests that have the same adapter and, after padding, equally many tokens to compute. A reply depends on
// its request alone, not on other requests or on what was cached, as far as the device computes a row of a matmul
// independently of the others (docs/design.md).
package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"

	"github.com/goart-dev/art/internal/engine/schedule"
	"github.com/goart-dev/art/internal/graphx"
	"github.com/goart-dev/art/internal/plan"
	"github.com/goart-dev/art/model"
)

// ErrClosed is the error of requests to a closed engine.
var ErrClosed = errors.New("engine: closed")

// ErrBusy is the error of requests beyond [Options].Queue.
var ErrBusy = errors.New("engine: too many requests are waiting")

// Options describe an engine. Device, Config and Params are required.
type Options struct {
	Device compute.Backend
	Config *model.Config
	// Params are the weights on the device. They are shared, not copied.
	Params *model.Params
	// Slots is the number of requests that run at once. Default 32.
	Slots int
	// Context is the number of tokens that prompt and reply of a request may have. Default: the maximum of the model.
	Context int
	// CacheTokens is the number of tokens in the KV cache, of all requests that run and of earlier ones: at least Context.
	// It is rounded up to whole blocks. Default: Slots times Context.
	CacheTokens int
	// CacheType is float32, the default, or bfloat16, to which keys and values are then rounded; see
	// [graphx.ComputesBFloat16].
	CacheType dtypes.DType
	// ProgramBytes bounds the memory of compiled graphs: one that there is no room for is compiled again when it is
	// needed. Default: on the CPU device see [plan.Sampling]; on others, which take long to compile and do not say what a
	// program takes, the number of programs is bounded, see [MostPrograms].
	ProgramBytes int64
	// Queue is the number of requests that may wait until others have ended; those beyond get [ErrBusy]. Default 0: no
	// limit, callers wait until their context ends.
	Queue int
	// FewShapes is for devices that take long to compile: rounds are padded more, with tokens and with slots.
	FewShapes bool
	// DecodeSteps is the number of tokens that a call of the device decodes for each slot. Above 1 the device samples them
	// itself, in a loop, which not all devices support. New requests and cancellations wait for the end of a call.
	// Default 1.
	DecodeSteps int

	unroll bool // unrolls the loop of DecodeSteps: for tests on devices without loops
}

// Engine serves requests until it is closed. It is safe for concurrent use.
type Engine struct {
	opts   Options
	loader loader
	runner *runner
	queue  chan *job
	tasks  chan func(*loop) // what else the loop does, between rounds
	inside atomic.Int64     // requests that run or wait
	stats  atomic.Pointer[Stats]
	quit   chan struct{} // closed by Close
	done   chan struct{} // closed when the loop has ended
	once   sync.Once
}

// New starts an engine.
func New(opts Options) (*Engine, error) {
	c := opts.Config
	opts = opts.withDefaults()
	if opts.DecodeSteps < 1 {
		return nil, fmt.Errorf("engine: %d tokens a call: want at least 1", opts.DecodeSteps)
	}
	loops := opts.Device.Capabilities().Functions && !graphx.ProfileOf(opts.Device).NoLoops
	if n := opts.DecodeSteps; n > 1 && !loops && !opts.unroll {
		return nil, fmt.Errorf("engine: %d tokens a call: device %q has no loops; ask for 1, or use a device of XLA", n,
			opts.Device.Name())
	}
	if t := opts.CacheType; t != dtypes.Float32 && (t != dtypes.BFloat16 || !graphx.ComputesBFloat16(opts.Device)) {
		return nil, fmt.Errorf("engine: a cache of type %s, which %q does not have", t, opts.Device.Name())
	}
	if opts.Slots < 0 || opts.Context < 2 || opts.Context > c.MaxPositions {
		return nil, fmt.Errorf("engine: %d slots of %d tokens: want at least 1 slot and 2 to %d tokens",
			opts.Slots, opts.Context, c.MaxPositions)
	}
	if opts.CacheTokens < opts.Context || opts.Queue < 0 {
		return nil, fmt.Errorf("engine: a cache of %d tokens and a queue of %d: want at least %d, the context, and 0",
			opts.CacheTokens, opts.Queue, opts.Context)
	}
	r, err := newRunner(opts)
	if err != nil {
		return nil, err
	}
	e := &Engine{
		opts: opts, loader: loader{device: opts.Device, config: c, params: opts.Params}, runner: r,
		queue: make(chan *job), tasks: make(chan func(*loop)), quit: make(chan struct{}), done: make(chan struct{}),
	}
	e.stats.Store(&Stats{Blocks: opts.shapes().Blocks - 1})
	go e.loop()
	return e, nil
}

// withDefaults sets the defaults of zeros.
func (o Options) withDefaults() Options {
	o.Slots = cmp.Or(o.Slots, plan.DefaultSlots)
	o.Context = cmp.Or(o.Context, o.Config.MaxPositions)
	o.CacheTokens = cmp.Or(o.CacheTokens, o.Slots*o.Context)
	o.CacheType = cmp.Or(o.CacheType, dtypes.Float32)
	o.DecodeSteps = cmp.Or(o.DecodeSteps, 1)
	return o
}

// sampling describes the engine for plans. The options have their defaults, and may lack the device.
func (o Options) sampling() plan.Sampling {
	var on graphx.Profile
	if o.Device != nil {
		on = graphx.ProfileOf(o.Device)
	}
	on.SlowCompile = o.FewShapes
	return plan.Sampling{
		Config: o.Config, On: on, Slots: o.Slots, Context: o.Context, CacheTokens: o.CacheTokens,
		Matrices: dtypes.Float32, CacheType: o.CacheType,
	}
}

// shapes are the sizes that graphs are compiled for.
func (o Options) shapes() plan.Shapes { return o.sampling().Shapes() }

// Context returns the number of tokens that prompt and reply may have together.
func (e *Engine) Context() int { return e.opts.Context }

// Close stops the engine. Running and waiting requests return [ErrClosed].
func (e *Engine) Close() {
	e.once.Do(func() { close(e.quit) })
	<-e.done
}

// Complete samples the completion of one request.
func (e *Engine) Complete(ctx context.Context, r Request) (*Result, error) {
	return e.Stream(ctx, r, nil)
}

// submit hands a job to the loop.
func (e *Engine) submit(j *job) error {
	if n := e.inside.Add(1); e.opts.Queue > 0 && n > int64(e.opts.Slots+e.opts.Queue) {
		e.inside.Add(-1)
		return fmt.Errorf("%w: %d", ErrBusy, e.opts.Queue)
	}
	err := ErrClosed
	select {
	case e.queue <- j:
		return nil
	case <-j.ctx.Done():
		err = context.Cause(j.ctx)
	case <-e.quit:
	}
	e.inside.Add(-1)
	return err
}

// feed hands the tokens of one reply from the loop to its caller. The loop never waits: tokens that the caller has not
// taken are kept, of which there are at most as many as the reply has.
type feed struct {
	mu     sync.Mutex
	tokens []Token
	wake   chan struct{} // has an element if there may be tokens
}

// push adds a token. A nil feed takes none.
func (f *feed) push(t Token) {
	if f == nil {
		return
	}
	f.mu.Lock()
	f.tokens = append(f.tokens, t)
	f.mu.Unlock()
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

// Stream is [Engine.Complete] that calls emit, in the goroutine of the caller, with the tokens of the reply as they
// are sampled: each once, in order, all before it returns a result.
//
// A slow emit stalls nobody, not even its own reply: it is called with all tokens that were sampled since its last
// call. If emit returns an error the request is cancelled, and that is the error of Stream. nil takes no tokens.
func (e *Engine) Stream(ctx context.Context, r Request, emit func([]Token) error) (*Result, error) {
	if err := r.check(e.opts); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // the loop drops the job before its next round
	j := newJob(ctx, r, e.opts)
	var wake chan struct{}
	if emit != nil {
		wake = make(chan struct{}, 1)
		j.feed = &feed{wake: wake}
	}
	if err := e.submit(j); err != nil {
		return nil, err
	}
	for {
		select {
		case <-wake:
			if err := j.feed.emit(emit); err != nil {
				return nil, err
			}
		case o := <-j.reply:
			if err := j.feed.emit(emit); err != nil {
				return nil, err
			}
			return o.result, o.err
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// emit calls to with the tokens since the last call, if there are any. A nil feed has none.
func (f *feed) emit(to func([]Token) error) error {
	if f == nil {
		return nil
	}
	f.mu.Lock()
	tokens := f.tokens
	f.tokens = nil
	f.mu.Unlock()
	if len(tokens) == 0 {
		return nil
	}
	return to(tokens)
}

// Stats say what an engine does, after its last round.
type Stats struct {
	Running, Waiting int // requests
	Blocks           int // of the KV cache
	Free             int // of them, those that hold nothing,
	Cached           int // and those that hold tokens of earlier requests only
	Totals
	schedule.Stats // since the start
}

// Totals count what an engine has computed since the start.
type Totals struct {
	Rounds    int // calls of the device
	Steps     int // of the loops of calls that decode many tokens, each of which makes a token of each slot
	Shared    int // of these steps, those that read once what the slots have in common
	Prefilled int // tokens of prompts, and of replies that had lost their blocks
	Sampled   int // tokens of replies
}

// Stats returns what the engine does. Waiting has the requests that it has not taken yet.
func (e *Engine) Stats() Stats {
	s := *e.stats.Load()
	s.Waiting = max(s.Waiting, int(e.inside.Load())-s.Running)
	return s
}
