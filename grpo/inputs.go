package grpo

import . "github.com/gomlx/gomlx/core/graph"

// LogprobInputs are what the logprobs of trained tokens depend on besides parameters.
type LogprobInputs struct {
	IDs      *Node // [B, T]
	Branches []BranchInputs
	Position *Node // [N, 1] index in [M] of the hidden state that predicts the token
	Target   *Node // [N, 1] id of the token
}

// BranchInputs are a rectangle of branches.
type BranchInputs struct {
	IDs   *Node // [R, T]
	Start *Node // [R] position of the first token
	Keys  *Node // [R, S] the token at each position
}

// LogprobInputsOf names the first of [MicroBatch.Tensors] in a graph, and returns the others.
func LogprobInputsOf(tensors []*Node) (in LogprobInputs, others []*Node) {
	in.IDs, tensors = tensors[0], tensors[1:]
	for tensors[1].Rank() == 1 { // the starts of branches; a target has rank 2
		in.Branches = append(in.Branches, BranchInputs{IDs: tensors[0], Start: tensors[1], Keys: tensors[2]})
		tensors = tensors[3:]
	}
	in.Position, in.Target = tensors[0], tensors[1]
	return in, tensors[2:]
}

// LossInputsOf names the others of [MicroBatch.Tensors] in a graph; logprobs are [N], computed from the first ones.
func LossInputsOf(others []*Node, logprobs *Node) LossInputs {
	return LossInputs{
		New: logprobs, Old: others[0], Advantage: others[1], Weight: others[2], Mask: others[3], Behavior: others[4],
		Reference: others[5], Sequence: others[6], Denominator: others[7],
	}
}
