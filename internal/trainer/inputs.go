package trainer

// Shapes: B rows of T tokens, and R rows of branches with S keys, M tokens in all; N of them are trained.

import (
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"

	"github.com/goart-dev/art/grpo"
	"github.com/goart-dev/art/internal/pack"
	"github.com/goart-dev/art/model"
)

// inputShapes returns the shapes of [lossInputs].
func inputShapes(l pack.Layout) []shapes.Shape {
	ints := func(dims ...int) shapes.Shape { return shapes.Make(dtypes.Int32, dims...) }
	list := []shapes.Shape{ints(l.Rows, l.Length)}
	for _, b := range l.Branches {
		if b.Rows > 0 {
			list = append(list, ints(b.Rows, b.Length), ints(b.Rows), ints(b.Rows, b.Keys))
		}
	}
	number := shapes.Make(dtypes.Float32, l.Trained)
	return append(list, ints(l.Trained, 1), ints(l.Trained, 1), number, number, number, number, number, number,
		ints(l.Trained, 1), shapes.Make(dtypes.Float32))
}

// logprobInputs returns the inputs that logprobs depend on: ids; of each rectangle of branches ids, starts and keys;
// position and target. [readTokens] names them in a graph.
func logprobInputs(m *pack.MicroBatch) []any {
	b, n := &m.Tokens, m.Trained
	from := m.Rows * m.Length
	list := []any{tensors.FromFlatDataAndDimensions(m.IDs[:from], m.Rows, m.Length)}
	starts, keys := m.Starts, m.Keys
	for _, x := range m.Branches {
		if x.Rows == 0 {
			continue
		}
		list = append(list, tensors.FromFlatDataAndDimensions(m.IDs[from:from+x.Rows*x.Length], x.Rows, x.Length),
			tensors.FromFlatDataAndDimensions(starts[:x.Rows], x.Rows),
			tensors.FromFlatDataAndDimensions(keys[:x.Rows*x.Keys], x.Rows, x.Keys))
		from, starts, keys = from+x.Rows*x.Length, starts[x.Rows:], keys[x.Rows*x.Keys:]
	}
	return append(list, tensors.FromFlatDataAndDimensions(b.Position, n, 1),
		tensors.FromFlatDataAndDimensions(b.Target, n, 1))
}

// lossInputs returns the inputs of the graph of a loss: [logprobInputs], then old, advantage, weight, mask, behavior,
// reference, sequence and denominator, the number of trained tokens that one optimizer step sees. [readLoss] names
// these in a graph.
func lossInputs(m *pack.MicroBatch, denominator float32) []any {
	b, n := &m.Tokens, m.Trained
	list := logprobInputs(m)
	for _, x := range [][]float32{b.Old, b.Advantage, b.Weight, b.Mask, b.Behavior, b.Reference} {
		list = append(list, tensors.FromFlatDataAndDimensions(x, n))
	}
	return append(list, tensors.FromFlatDataAndDimensions(b.Sequence, n, 1), tensors.FromScalar(denominator))
}

// tokens are what the logprobs of trained tokens depend on besides parameters.
type tokens struct {
	model.Input
	position *Node // [N, 1] index in [M] of the hidden state that predicts the token
	target   *Node // [N, 1] id of the token
}

// readTokens names [logprobInputs] in a graph, and returns what follows them.
func readTokens(in []*Node) (read tokens, others []*Node) {
	read.Tokens, in = in[0], in[1:]
	for in[1].Rank() == 1 { // the starts of branches; a target has rank 2
		read.Branches = append(read.Branches, model.Branches{Tokens: in[0], Start: in[1], Keys: in[2]})
		in = in[3:]
	}
	read.position, read.target = in[0], in[1]
	return read, in[2:]
}

// readLoss names the others of [lossInputs] in a graph; logprobs are [N], computed from the tokens.
func readLoss(others []*Node, logprobs *Node) grpo.LossInputs {
	return grpo.LossInputs{
		New: logprobs, Old: others[0], Advantage: others[1], Weight: others[2], Mask: others[3], Behavior: others[4],
		Reference: others[5], Sequence: others[6], Denominator: others[7],
	}
}
