package trainer

import (
	"context"
	"math"
	"slices"
	"sync"

	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"

	"github.com/goart-dev/art/grpo"
	"github.com/goart-dev/art/grpo/credit"
	"github.com/goart-dev/art/model"
)

// Shape legend: D hidden, N trained tokens, V vocabulary.

// pass is what a forward pass over a batch gives, with gradients or without.
type pass struct {
	grads    gradients // nil without
	totals   *grpo.Totals
	value    float64     // of the loss
	logprobs [][]float32 // of each sequence, per token; 0 where it is not trained
	computed int         // tokens, padding included

	recomputed int // those whose layers were computed again
}

// pass computes a loss over a batch, and with backward its gradient, micro-batch by micro-batch in order. Weights are
// divided by the denominator already. The caller frees the gradient.
func (t *Trainer) pass(
	ctx context.Context, params []*tensors.Tensor, batch []grpo.Sequence, call lossCall, backward bool,
) (*pass, error) {
	pieces, err := t.microBatches(batch, call.limit)
	if err != nil {
		return nil, err
	}
	p := &pass{totals: grpo.NewTotals(call.loss.Spec().Metrics), logprobs: perToken(batch)}
	shared, free, err := t.shared(params)
	if err != nil {
		return nil, err
	}
	defer free()
	n := 0 // gradients among the results
	if backward {
		n = len(params)
	}
	in := inOrder{add: func(i int, out []*tensors.Tensor) (err error) {
		defer finalize(out[n:])
		if p.grads, err = t.sum(p.grads, out[:n]); err != nil {
			return err
		}
		if backward && t.recomputes(pieces[i], pieces) {
			p.recomputed += pieces[i].Layout.Tokens()
		}
		return p.collect(batch, pieces[i], out[n:])
	}}
	w := work{name: "gradient", pieces: pieces, graph: func(i int) graphFunction {
		return t.lossGraph(call.loss, backward, backward && t.recomputes(pieces[i], pieces))
	}, shared: shared, inputs: func(i int) []any { return pieces[i].Tensors(call.denominator) }}
	err = t.each(ctx, w, func(at, i int, out []*tensors.Tensor) error {
		grads, err := t.home(at, out[:n])
		if err != nil {
			finalize(out[n:])
			return err
		}
		return in.done(i, slices.Concat(grads, out[n:]))
	})
	in.drop()
	if err != nil {
		p.grads.free()
		return nil, err
	}
	return p, nil
}

// result is a pass as the caller of a session sees it.
func (p *pass) result() *Pass {
	return &Pass{
		Loss: p.value, Logprobs: p.logprobs, Metrics: p.totals.Metrics(), Computed: p.computed, Recomputed: p.recomputed,
		totals: p.totals,
	}
}

// inOrder adds results in the order of their numbers, as soon as those before are there. It is safe for concurrent use.
type inOrder struct {
	mu      sync.Mutex
	next    int
	waiting map[int][]*tensors.Tensor
	add     func(i int, out []*tensors.Tensor) error
}

// done adds a result, or keeps it until those before are there.
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

// drop frees results that were not added, after an error.
func (o *inOrder) drop() {
	for _, out := range o.waiting {
		finalize(out)
	}
}

// lossCall is a loss as it is called for a batch.
type lossCall struct {
	loss        grpo.Loss
	denominator float32 // trained tokens that the optimizer step sees
	limit       int     // most sequences of a micro-batch; 0 is no bound
}

// weighed divides the weights of a batch by its number of trained tokens, which it returns.
func weighed(batch []grpo.Sequence) ([]grpo.Sequence, float32) {
	n := credit.NumTrained(batch)
	batch = slices.Clone(batch)
	for i := range batch {
		batch[i].Weight /= float64(n)
	}
	return batch, float32(n)
}

// collect adds what the graph gives besides gradients for a micro-batch: loss, metrics, logprobs.
func (p *pass) collect(batch []grpo.Sequence, m piece, out []*tensors.Tensor) error {
	value, err := tensors.CopyFlatData[float32](out[0])
	if err != nil {
		return err
	}
	metrics, err := tensors.CopyFlatData[float32](out[1])
	if err != nil {
		return err
	}
	p.value += float64(value[0])
	p.computed += m.Layout.Tokens()
	if err := p.totals.AddMicroBatch(metrics, m.Tokens.NumInLoss); err != nil {
		return err
	}
	return m.spread(batch, out[2], p.logprobs)
}

// hidden builds the hidden states of all tokens, and returns what builds the gradient of a loss on them.
func (t *Trainer) hidden(
	f *model.Forward, in grpo.LogprobInputs, recompute bool,
) (hidden *Node, gradient func(loss *Node, trained ...*Node) []*Node) {
	if !recompute {
		hidden, _ = f.Hidden(forwardInput(in))
		return hidden, Gradient
	}
	hidden, pass := f.Recomputed(forwardInput(in))
	return hidden, pass.Gradient
}

// tokenLogprobs builds the logprobs [N] of trained tokens. Logits are computed at their positions only.
func tokenLogprobs(f *model.Forward, in grpo.LogprobInputs) *Node {
	hidden, _ := f.Hidden(forwardInput(in))
	return f.TokenLogProbs(Gather(Reshape(hidden, -1, f.Config.HiddenSize), in.Position), in.Target)
}

// forwardInput is what a forward pass reads of the inputs of a graph.
func forwardInput(in grpo.LogprobInputs) model.Input {
	input := model.Input{Tokens: in.IDs}
	for _, b := range in.Branches {
		input.Branches = append(input.Branches, model.Branches{Tokens: b.IDs, Start: b.Start, Keys: b.Keys})
	}
	return input
}

// updateGraph returns what builds an update of n tensors: parameters, first and second moments, norm.
func updateGraph(cfg grpo.AdamW, n int) func(in []*Node) []*Node {
	return func(in []*Node) []*Node {
		state := grpo.AdamWState{Params: in[:n], M: in[n : 2*n], V: in[2*n : 3*n]}
		next, norm := cfg.Step(state, in[3*n:4*n], in[4*n])
		return append(next.Nodes(), norm)
	}
}

func finalize(list []*tensors.Tensor) {
	for _, x := range list {
		_ = x.FinalizeAll() // where the device fails, the error of the call or of a read is the one to report
	}
}

// finalizeInputs frees the tensors of inputs that are not donated.
func finalizeInputs(in []any) {
	for _, x := range in {
		_ = x.(*tensors.Tensor).FinalizeAll()
	}
}

func finite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }
