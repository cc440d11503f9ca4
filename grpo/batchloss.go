package grpo

import "fmt"

// BatchLoss is a [Loss] of pairs of sequences, or of all that one optimizer step sees: more than a micro-batch holds.
// It is linearised. Before each optimizer step the trainer computes the logprobs of its batch and calls Linearize;
// Build then gets the derivatives as advantages. That is exact: where it is taken, the gradient of the linear function
// is the gradient of the loss, and an optimizer step uses no other. It costs a forward pass for each optimizer step,
// and lets micro-batches be cut anywhere.
//
// It is no loss for [Corrected] or [Penalized], inside of which it would not be linearised: their Validate refuses it.
type BatchLoss interface {
	Loss
	// Together is the number of consecutive sequences of a batch that belong to the same optimizer step: 2 for pairs.
	Together() int
	// Linearize returns the sequences of one optimizer step with advantages and weights, and the value of the loss.
	// logprobs are those of the policy being trained, a list for each sequence, per token. The sequences given stay as
	// they are.
	Linearize(batch []Sequence, logprobs [][]float32) (linear []Sequence, value float64)
	// Value describes the value.
	Value() Metric
}

// validateInner reports a loss that cannot be inside of a correction or a penalty: none, an invalid one, or a
// [BatchLoss].
func validateInner(of string, l Loss) error {
	if l == nil {
		return fmt.Errorf("grpo: a %s without a loss", of)
	}
	if _, ok := l.(BatchLoss); ok {
		return fmt.Errorf("grpo: a %s of loss %q, which would not be linearised inside of it", of, l.Spec().Key)
	}
	return l.Validate()
}
