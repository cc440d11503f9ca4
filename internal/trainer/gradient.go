package trainer

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sync"

	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"

	"github.com/goart-dev/art/grpo"
	"github.com/goart-dev/art/grpo/credit"
	"github.com/goart-dev/art/internal/graphx"
)

// Shape legend: D hidden, N trained tokens, V vocabulary.

// evaluate computes a loss over a batch, micro-batch by micro-batch, and with backward its gradient, which the caller
// frees. The weights of the sequences are divided by the denominator of the call already.
func (t *Trainer) evaluate(
	ctx context.Context, params []*tensors.Tensor, batch []grpo.Sequence, call lossCall, backward bool,
) (result *Pass, grads gradients, err error) {
	pieces, err := t.microBatches(batch, call.limit)
	if err != nil {
		return nil, nil, err
	}
	result = &Pass{totals: newTotals(call.loss.Spec().Metrics), Logprobs: perToken(batch)}
	shared, free, err := t.shared(params)
	if err != nil {
		return nil, nil, err
	}
	defer free()
	n := 0 // of the outputs of a graph that are gradients
	if backward {
		n = len(params)
	}
	sum := inOrder{add: func(i int, out []*tensors.Tensor) (err error) {
		defer finalize(out[n:])
		if grads, err = t.sum(grads, out[:n]); err != nil {
			return err
		}
		if backward && t.recomputes(pieces[i], pieces) {
			result.Recomputed += pieces[i].Layout.Tokens()
		}
		return result.add(batch, pieces[i], out[n:])
	}}
	w := work{name: "gradient", pieces: pieces, graph: func(i int) graphFunction {
		return t.lossGraph(call.loss, backward, backward && t.recomputes(pieces[i], pieces))
	}, shared: shared, inputs: func(i int) []any { return lossInputs(pieces[i].MicroBatch, call.denominator) }}
	err = t.each(ctx, w, func(at, i int, out []*tensors.Tensor) error {
		if at > 0 { // gradients are added on the first device
			local, err := copyTo(t.opts.Device, out[:n])
			finalize(out[:n])
			if err != nil {
				finalize(out[n:])
				return err
			}
			out = slices.Concat(local, out[n:])
		}
		return sum.done(i, out)
	})
	for _, out := range sum.waiting { // after an error
		finalize(out)
	}
	if err != nil {
		grads.free()
		return nil, nil, err
	}
	result.Metrics = result.totals.logged()
	return result, grads, nil
}

// add adds to a result what a graph gives for a micro-batch besides gradients: loss, metrics, logprobs.
func (p *Pass) add(batch []grpo.Sequence, m piece, out []*tensors.Tensor) error {
	value, err := tensors.CopyFlatData[float32](out[0])
	if err != nil {
		return err
	}
	metrics, err := tensors.CopyFlatData[float32](out[1])
	if err != nil {
		return err
	}
	p.Loss += float64(value[0])
	p.Computed += m.Layout.Tokens()
	if err := p.totals.addMicroBatch(metrics, m.Tokens.NumInLoss); err != nil {
		return err
	}
	return m.spread(batch, out[2], p.Logprobs)
}

// inOrder adds up the outputs of micro-batches in the order of their numbers, whichever device or worker is done first:
// the sum of floating-point numbers depends on their order. It is safe for concurrent use.
type inOrder struct {
	mu      sync.Mutex
	next    int                       // number of the micro-batch to add next
	waiting map[int][]*tensors.Tensor // outputs for which others have to be added before
	add     func(i int, out []*tensors.Tensor) error
}

// done adds the outputs of a micro-batch and those that wait for it, or has them wait for those before.
func (o *inOrder) done(i int, out []*tensors.Tensor) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.waiting == nil {
		o.waiting = map[int][]*tensors.Tensor{}
	}
	o.waiting[i] = out
	for out, ok := o.waiting[o.next]; ok; out, ok = o.waiting[o.next] {
		delete(o.waiting, o.next)
		if err := o.add(o.next, out); err != nil {
			return err
		}
		o.next++
	}
	return nil
}

// lossCall is a loss, and how it is called for a batch.
type lossCall struct {
	loss        grpo.Loss
	denominator float32 // number of trained tokens of the optimizer step, by which weights are divided
	limit       int     // most sequences of a micro-batch; 0 is no bound
}

// averaged divides the weights of the sequences of an optimizer step by the number of their trained tokens, which it
// returns: the loss is then a mean over tokens.
func averaged(batch []grpo.Sequence) ([]grpo.Sequence, float32) {
	n := credit.NumTrained(batch)
	batch = slices.Clone(batch)
	for i := range batch {
		batch[i].Weight /= float64(n)
	}
	return batch, float32(n)
}

func finalize(list []*tensors.Tensor) {
	for _, x := range list {
		_ = x.FinalizeAll() // where the device fails, the error of the call or of a read is the one to report
	}
}

func finite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }

// gradients are on the device, one for each trained tensor. nil when there are none.
type gradients []*tensors.Tensor

func (g gradients) free() { finalize(g) }

// sum adds more to gradients, whose memory the sum takes. Both belong to the result, and are freed after an error.
func (t *Trainer) sum(g, more gradients) (gradients, error) {
	if g == nil || more == nil {
		return append(g, more...), nil
	}
	defer more.free()
	in, err := graphx.Donate(t.opts.Device, g)
	if err != nil {
		return nil, fmt.Errorf("trainer: gradient: %w", err)
	}
	n := len(g)
	out, err := t.updates.Call("sum", func(in []*Node) (out []*Node) {
		for i := range n {
			out = append(out, Add(in[i], in[n+i]))
		}
		return out
	}, appendInputs(in, more))
	if err != nil {
		return nil, fmt.Errorf("trainer: gradient: %w", err)
	}
	return out, nil
}

// finite reports whether the norm of gradients is, as an update computes it.
func (t *Trainer) finite(g gradients) (bool, error) {
	if g == nil {
		return true, nil
	}
	out, err := t.updates.Call("norm", func(in []*Node) []*Node {
		return []*Node{grpo.GlobalNorm(in)}
	}, appendInputs(nil, g))
	if err != nil {
		return false, fmt.Errorf("trainer: norm: %w", err)
	}
	defer finalize(out)
	read, err := tensors.CopyFlatData[float32](out[0])
	if err != nil {
		return false, fmt.Errorf("trainer: norm: %w", err)
	}
	return finite(float64(read[0])), nil
}

// appendInputs appends tensors to the inputs of a graph.
func appendInputs(in []any, list []*tensors.Tensor) []any {
	for _, x := range list {
		in = append(in, x)
	}
	return in
}
