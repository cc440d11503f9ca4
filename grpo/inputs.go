package grpo

import . "github.com/gomlx/gomlx/core/graph"

// LogprobInputs are what the logprobs of trained tokens depend on besides parameters.
type LogprobInputs struct {
	IDs      *Node // [B, T]
	Position *Node // [N, 1] index in [B*T] of the hidden state that predicts the token
	Target   *Node // [N, 1] id of the token
}

// LogprobInputsOf names the first [NumLogprobTensors] of [MicroBatch.Tensors] in a graph.
func LogprobInputsOf(tensors []*Node) LogprobInputs {
	return LogprobInputs{IDs: tensors[0], Position: tensors[1], Target: tensors[2]}
}

// LossInputsOf names all of [MicroBatch.Tensors] in a graph; logprobs are [N], computed from the first ones.
func LossInputsOf(tensors []*Node, logprobs *Node) LossInputs {
	return LossInputs{
		New: logprobs, Old: tensors[3], Advantage: tensors[4], Weight: tensors[5], Mask: tensors[6],
		Behavior: tensors[7], Reference: tensors[8], Denominator: tensors[9], Position: tensors[1],
		Layout: Layout{Rows: tensors[0].Shape().Dim(0), Length: tensors[0].Shape().Dim(1),
			Trained: logprobs.Shape().Dim(0)},
	}
}
