package trainer

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/gomlx/compute"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"

	"github.com/goart-dev/art/grpo"
	"github.com/goart-dev/art/internal/graphx"
	"github.com/goart-dev/art/internal/pack"
	"github.com/goart-dev/art/model"
)

// work is what is computed of each of some micro-batches.
type work struct {
	name   string // for errors
	pieces []piece
	graph  func(i int) graphFunction
	shared [][]any           // inputs that all have, for each device
	inputs func(i int) []any // those of one, which the caller frees
}

// each computes work and calls yield with the results of each micro-batch, on as many goroutines for each device as
// there are workers, until one fails or ctx is done. Micro-batches that are larger than usual come last, one at a time
// for each device, which gives it all of its workers.
func (t *Trainer) each(ctx context.Context, w work, yield func(at, i int, out []*tensors.Tensor) error) error {
	if err := t.compileAhead(ctx, w); err != nil {
		return err
	}
	run := func(at, i int) error {
		began := time.Now()
		f, own := w.graph(i), w.inputs(i)
		key := t.key(f, w.pieces[i].Layout)
		out, err := t.places()[at].programs.Call(key, f.build, slices.Concat(w.shared[at], own))
		for _, x := range own {
			_ = x.(*tensors.Tensor).FinalizeAll() // what the graph has not taken over
		}
		if err != nil {
			return fmt.Errorf("%s: %w", w.name, err)
		}
		if err = yield(at, i, out); err == nil && t.opts.Pause != nil {
			t.opts.Pause(ctx, time.Since(began))
		}
		return err
	}
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

// A graph is compiled for each layout of a micro-batch, and an agent whose conversations vary in length has new ones in
// every step. So programs are kept while there is room for them, and compiled again when they are needed later.

// graphFunction is a graph of a trainer, whose inputs have the shapes of a layout.
type graphFunction struct {
	name  graphName
	build func(in []*Node) []*Node
}

// graphName names the graph of a loss, or that of logprobs, whose loss is empty.
type graphName struct {
	loss      string // see grpo.LossSpec
	backward  bool
	recompute bool
}

// programKey names a program of a trainer.
type programKey struct {
	target string // its layout
	graph  graphName
	layout pack.Layout
}

// key names the program of a graph for a layout.
func (t *Trainer) key(f graphFunction, layout pack.Layout) programKey {
	return programKey{t.target.layout, f.name, layout}
}

// lossGraph is the graph of a loss: with backward the gradients of the trained tensors, for which layers may be
// computed again; then the loss, its metrics as one vector, and the logprobs.
func (t *Trainer) lossGraph(l grpo.Loss, backward, recompute bool) graphFunction {
	name := graphName{l.Spec().Key, backward, recompute}
	return graphFunction{name, func(in []*Node) []*Node {
		forward, trained, in := t.target.split(in)
		read, others := readTokens(in)
		var states *Node
		gradient := Gradient
		if recompute { // layers are computed again for the gradient
			all, pass := forward.Recomputed(read.Input)
			states, gradient = all, pass.Gradient
		} else {
			states, _ = forward.Hidden(read.Input)
		}
		hidden := Gather(Reshape(states, -1, forward.Config.HiddenSize), read.position)
		logprobs := forward.TokenLogProbs(hidden, read.target)
		inputs := readLoss(others, logprobs)
		if l.Spec().Entropy {
			// Behind the logprobs: their logits are not kept for it.
			inputs.Entropy = forward.TokenEntropy(SchedulingBarrier(hidden, logprobs))
		}
		loss, metrics := grpo.BuildLoss(l, inputs)
		out := []*Node{loss, metrics, logprobs}
		if backward {
			out = append(gradient(loss, trained...), out...)
		}
		return out
	}}
}

// Replica is a further device of the same kind, which computes micro-batches of a training beside the first one.
type Replica struct {
	Device compute.Backend
	// Params are the frozen weights on it.
	Params *model.Params
	// Programs are the compiled graphs for it, as those of [Options] are for the first device. Required.
	Programs *graphx.Programs
}

// place is a device that computes micro-batches: the first one, which has the state of a training, or a replica. What a
// micro-batch needs of the state is copied to a replica, and its gradient back, so that sums are added in the same
// order on the same device: on equal devices no bit of a step depends on their number.
type place struct {
	device   compute.Backend
	programs *graphx.Programs
	frozen   []*tensors.Tensor
}

// places lists the first device and the replicas.
func (t *Trainer) places() []place {
	list := []place{{t.opts.Device, t.programs, t.target.frozen}}
	for _, r := range t.opts.Replicas {
		p := place{device: r.Device, programs: r.Programs}
		if !t.target.plan.Full {
			p.frozen = r.Params.Tensors
		}
		list = append(list, p)
	}
	return list
}

// shared lists the inputs that all micro-batches have in common, for each device: the frozen tensors, the trained ones,
// and the norms of those. free releases what was made.
func (t *Trainer) shared(trained []*tensors.Tensor) (in [][]any, free func(), err error) {
	made, err := t.normsOf(trained)
	if err != nil {
		return nil, nil, err
	}
	free = func() { finalize(made) }
	first := slices.Concat(trained, made)
	for i, p := range t.places() {
		own := first
		if i > 0 {
			if own, err = copyTo(p.device, first); err != nil {
				free()
				return nil, nil, err
			}
			made = append(made, own...)
		}
		in = append(in, appendInputs(nil, slices.Concat(p.frozen, own)))
	}
	return in, free, nil
}

// copyTo copies float32 tensors to another device.
func copyTo(device compute.Backend, list []*tensors.Tensor) (out []*tensors.Tensor, err error) {
	for _, x := range list {
		bad := tensors.ConstFlatData(x, func(values []float32) {
			var y *tensors.Tensor
			if y, err = graphx.Upload(device, values, x.Shape().Dimensions...); err == nil {
				out = append(out, y)
			}
		})
		if bad != nil {
			err = bad
		}
		if err != nil {
			finalize(out)
			return nil, fmt.Errorf("trainer: replica: %w", err)
		}
	}
	return out, nil
}
