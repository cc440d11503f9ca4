package trainer

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/gomlx/gomlx/core/tensors"

	"github.com/goart-dev/art/internal/graphx"
)

// work is what is computed of each of some micro-batches.
type work struct {
	name   string // for errors
	pieces []piece
	graph  func(i int) graphFunction
	shared [][]any           // inputs that all have, for each device
	inputs func(i int) []any // those of one, which the caller frees
}

// each computes work and calls f with the results of each micro-batch, on as many goroutines for each device as there
// are workers, until one fails or ctx is done. Micro-batches that are larger than usual come last, one at a time for
// each device, which gives it all of its workers.
func (t *Trainer) each(ctx context.Context, w work, f func(at, i int, out []*tensors.Tensor) error) error {
	if err := t.compileAhead(ctx, w); err != nil {
		return err
	}
	run := t.paced(ctx, func(at, i int) error {
		own := w.inputs(i)
		out, err := t.call(at, w.graph(i), w.pieces[i].Layout, slices.Concat(w.shared[at], own))
		finalizeInputs(own)
		if err != nil {
			return fmt.Errorf("%s: %w", w.name, err)
		}
		return f(at, i, out)
	})
	usual := slices.IndexFunc(w.pieces, t.large)
	if usual < 0 {
		usual = len(w.pieces)
	}
	err := t.parallel(ctx, 0, usual, t.sizes.Workers, run)
	if err == nil {
		err = t.parallel(ctx, usual, len(w.pieces), 1, run)
	}
	return err
}

// compileAhead compiles the programs of work side by side, on a device that runs micro-batches one after another:
// compiling them when they are called, each would wait for those before. It ends at the first error, or with ctx. Those
// for which there is no room are left to their calls.
func (t *Trainer) compileAhead(ctx context.Context, w work) error {
	if p := graphx.ProfileOf(t.opts.Device); !p.Serial || !p.SlowCompile {
		return nil
	}
	var first []int // micro-batches of each program
	seen := map[programKey]bool{}
	for i, piece := range w.pieces {
		if key := t.key(w.graph(i), piece.Layout); !seen[key] {
			seen[key], first = true, append(first, i)
		}
	}
	first = first[:min(len(first), t.programs.Room())]
	places := t.places()
	return inParallel(ctx, 0, len(first)*len(places), runtime.GOMAXPROCS(0), func(_, n int) error {
		at, i := n%len(places), first[n/len(places)]
		f := w.graph(i)
		err := places[at].programs.Compile(t.key(f, w.pieces[i].Layout), f.build, slices.Concat(w.shared[at], w.inputs(i)))
		if err != nil {
			return fmt.Errorf("%s: %w", w.name, err)
		}
		return nil
	})
}

// paced returns f with a pause after each call.
func (t *Trainer) paced(ctx context.Context, f func(at, i int) error) func(at, i int) error {
	if t.opts.Pause == nil {
		return f
	}
	return func(at, i int) error {
		began := time.Now()
		err := f(at, i)
		if err == nil {
			t.opts.Pause(ctx, time.Since(began))
		}
		return err
	}
}

// parallel calls f for the numbers from one to another, without the latter, on some workers for each device.
func (t *Trainer) parallel(ctx context.Context, from, to, workers int, f func(at, i int) error) error {
	devices := 1 + len(t.opts.Replicas)
	return inParallel(ctx, from, to, workers*devices, func(worker, i int) error { return f(worker%devices, i) })
}

// inParallel calls f for the numbers from one to another, without the latter, on some workers, until one fails or ctx
// is done.
func inParallel(ctx context.Context, from, to, workers int, f func(worker, i int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	next := make(chan int)
	var wg sync.WaitGroup
	for worker := range min(workers, to-from) {
		wg.Go(func() {
			for i := range next {
				var err error
				if panicked := graphx.Try(func() { err = f(worker, i) }); panicked != nil {
					err = panicked // it would end the process
				}
				if err != nil {
					cancel(fmt.Errorf("trainer: %w", err))
				}
			}
		})
	}
	for i := from; i < to && ctx.Err() == nil; i++ {
		select {
		case next <- i:
		case <-ctx.Done():
		}
	}
	close(next)
	wg.Wait()
	return context.Cause(ctx)
}
