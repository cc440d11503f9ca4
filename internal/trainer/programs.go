package trainer

import (
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"

	"github.com/goart-dev/art/grpo"
)

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
	layout grpo.Layout
}

// key names the program of a graph for a layout.
func (t *Trainer) key(f graphFunction, layout grpo.Layout) programKey {
	return programKey{t.target.layout, f.name, layout}
}

// call runs a graph on a micro-batch, on the device of a number.
func (t *Trainer) call(at int, f graphFunction, layout grpo.Layout, in []any) ([]*tensors.Tensor, error) {
	return t.places()[at].programs.Call(t.key(f, layout), f.build, in)
}

// lossGraph is the graph of a loss: with backward the gradients of the trained tensors, for which layers may be
// computed again; then the loss, its metrics as one vector, and the logprobs.
func (t *Trainer) lossGraph(l grpo.Loss, backward, recompute bool) graphFunction {
	name := graphName{l.Spec().Key, backward, recompute}
	return graphFunction{name, func(in []*Node) []*Node {
		forward, trained, in := t.target.split(in)
		read, others := grpo.LogprobInputsOf(in)
		states, gradient := t.hidden(forward, read, recompute)
		hidden := Gather(Reshape(states, -1, forward.Config.HiddenSize), read.Position)
		logprobs := forward.TokenLogProbs(hidden, read.Target)
		inputs := grpo.LossInputsOf(others, logprobs)
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

// scoreGraph is the graph of the logprobs of a micro-batch.
func (t *Trainer) scoreGraph() graphFunction {
	return graphFunction{graphName{}, func(in []*Node) []*Node {
		forward, _, in := t.target.split(in)
		read, _ := grpo.LogprobInputsOf(in)
		return []*Node{tokenLogprobs(forward, read)}
	}}
}
