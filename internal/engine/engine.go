// Package engine samples completions from one base model with any of several adapters, many at once (continuous
// batching).
//
// Requests join and leave a running batch of slots. A slot holds the keys and values of one conversation; it keeps them
// after a reply, so that the next turn computes only what is new, and other slots copy common prefixes from it, so that
// the samples of a group compute their prompt once.
//
// One goroutine, the loop, owns the device. Package schedule decides which request gets which slot and what each round
// computes; the loop samples and answers, and the runner compiles and runs the graphs. A round is one call of the
// device for all slots that have the same adapter and, after padding, equally many tokens to compute. A reply depends
// on its request alone, not on its slot, on other requests or on what was cached, as far as the device computes a row
// of a matmul independently of the others (docs/design.md).
package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/gomlx/compute"

	"github.com/goart-dev/art/model"
)

// DefaultSlots is the number of slots when Options leaves it 0.
const DefaultSlots = 32

// ErrClosed is the error of requests to a closed engine.
var ErrClosed = errors.New("engine: closed")

// Options describe an engine. Device, Config and Params are required.
type Options struct {
	Device compute.Backend
	Config *model.Config
	// Params are the weights on the device. They are shared, not copied.
	Params *model.Params
	// Slots is the width of the batch. Default 32.
	Slots int
	// Context is the number of tokens that a slot holds. Default: the maximum of the model.
	Context int
	// FewShapes is for devices that take long to compile: each round computes all slots, idle ones too.
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
	runner *runner
	queue  chan *job
	quit   chan struct{} // closed by Close
	done   chan struct{} // closed when the loop has ended
	once   sync.Once
}

// New starts an engine.
func New(opts Options) (*Engine, error) {
	c := opts.Config
	opts.Slots = cmp.Or(opts.Slots, DefaultSlots)
	opts.Context = cmp.Or(opts.Context, c.MaxPositions)
	opts.DecodeSteps = cmp.Or(opts.DecodeSteps, 1)
	if opts.DecodeSteps < 1 {
		return nil, fmt.Errorf("engine: %d tokens a call: want at least 1", opts.DecodeSteps)
	}
	if err := checkLoops(opts.Device, opts.DecodeSteps); err != nil && !opts.unroll {
		return nil, err
	}
	if opts.Slots < 0 || opts.Context < 2 || opts.Context > c.MaxPositions {
		return nil, fmt.Errorf("engine: %d slots of %d tokens: want at least 1 slot and 2 to %d tokens",
			opts.Slots, opts.Context, c.MaxPositions)
	}
	r, err := newRunner(opts)
	if err != nil {
		return nil, err
	}
	e := &Engine{opts: opts, runner: r, queue: make(chan *job), quit: make(chan struct{}), done: make(chan struct{})}
	go e.loop()
	return e, nil
}

// Context returns the number of tokens that prompt and reply may have together.
func (e *Engine) Context() int { return e.opts.Context }

// Close stops the engine. Running and waiting requests return [ErrClosed].
func (e *Engine) Close() {
	e.once.Do(func() { close(e.quit) })
	<-e.done
}

// Complete samples the completion of one request.
func (e *Engine) Complete(ctx context.Context, r Request) (*Result, error) {
	if err := r.check(e.opts); err != nil {
		return nil, err
	}
	j := newJob(ctx, r, e.opts)
	if err := e.submit(j); err != nil {
		return nil, err
	}
	select {
	case o := <-j.reply:
		return o.result, o.err
	case <-ctx.Done():
		return nil, context.Cause(ctx) // the loop drops the job before its next round
	}
}

// submit hands a job to the loop.
func (e *Engine) submit(j *job) error {
	select {
	case e.queue <- j:
		return nil
	case <-j.ctx.Done():
		return context.Cause(j.ctx)
	case <-e.quit:
		return ErrClosed
	}
}
