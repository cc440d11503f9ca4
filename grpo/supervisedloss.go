package grpo

import . "github.com/gomlx/gomlx/core/graph"

// SupervisedLoss is the negative log-likelihood of the trained tokens. With w the weight of a token,
//
//	loss = Σ -new·w / denominator
//
// It is maximum likelihood: take it where good answers are at hand, which are to be imitated. Its metric is
//
//	loss/sft   mean -new, nats
type SupervisedLoss struct{}

// Validate accepts it: there is nothing to configure.
func (SupervisedLoss) Validate() error { return nil }

// Spec implements [Loss].
func (SupervisedLoss) Spec() LossSpec {
	return LossSpec{Key: "supervised", Metrics: []Metric{{
		Name: "loss/sft", Formula: "mean of -logprob over the trained tokens", Unit: "nats", Healthy: "falls",
	}}}
}

// Build implements [Loss].
func (SupervisedLoss) Build(in LossInputs) (loss *Node, metrics map[string]*Node) {
	nll := Neg(in.New) // [N]
	return in.Mean(nll), map[string]*Node{"loss/sft": ReduceAllSum(nll)}
}
