package grpo

import (
	. "github.com/gomlx/gomlx/core/graph"

	"github.com/goart-dev/art/grpo/credit"
)

// PreferenceLoss is that of direct preference optimization (DPO). A batch is pairs: a chosen sequence, then a rejected
// one, both with reference logprobs. With sums over the trained tokens of each,
//
//	r    = Beta·Σ (new - reference)                   (the reward that the policy implies, of chosen and of rejected)
//	r    = Beta·Σ (new - reference) / trained tokens  (Mean)
//	m    = r of chosen - r of rejected
//	loss = mean over pairs of -(1-Smoothing)·log σ(m) - Smoothing·log σ(-m)
//
// It is a [BatchLoss]. The derivative of a pair's loss with respect to m is g = σ(m) - 1 + Smoothing, so tokens of the
// chosen sequence have the advantage -g·Beta, those of the rejected one g·Beta, and the graph is
//
//	Σ -A·new / pairs
//
// Metrics:
//
//	loss/dpo        the loss, before each optimizer step
//	loss/dpo_nll    mean -new over the trained tokens of both, nats
//
// Take it where pairs are at hand and no reward is; Mean where one side is much longer; Smoothing 0.1 for noisy labels.
//
// Sources: Rafailov et al. 2023, https://arxiv.org/abs/2305.18290; Smoothing is conservative DPO, Mitchell 2023,
// https://ericmitchell.ai/cdpo.pdf; Mean is the length-normalised DPO of Tülu 3, https://arxiv.org/abs/2411.15124.
type PreferenceLoss struct {
	credit.Preference
}

var _ BatchLoss = PreferenceLoss{}

// Spec implements [Loss]. Graphs do not depend on the fields: they are in the advantages.
func (PreferenceLoss) Spec() LossSpec {
	return LossSpec{Key: "preference", Reference: true, Metrics: []Metric{{
		Name: "loss/dpo_nll", Formula: "mean of -logprob over the trained tokens of chosen and rejected answers",
		Unit: "nats",
	}}}
}

// Build implements [Loss].
func (PreferenceLoss) Build(in LossInputs) (loss *Node, metrics map[string]*Node) {
	nll := Neg(in.New) // [N]
	return in.Mean(Mul(nll, in.Advantage)), map[string]*Node{"loss/dpo_nll": ReduceAllSum(nll)}
}

// Together implements [BatchLoss].
func (PreferenceLoss) Together() int { return 2 }

// Value implements [BatchLoss].
func (PreferenceLoss) Value() Metric {
	return Metric{
		Name:    "loss/dpo",
		Formula: "mean over pairs and optimizer steps of the loss of DPO, before each step",
		Unit:    "nats", Healthy: "falls from 0.69, which is no preference",
	}
}

// PreferenceMetrics describes those of credit.Preference.Measure.
var PreferenceMetrics = []Metric{
	{Name: "train/reward_margin", Formula: "mean over pairs of the reward that the policy implies for the chosen " +
		"answer, less that of the rejected one, after the step; a reward is Beta * sum of new - reference", Healthy: "rises"},
	{Name: "train/reward_accuracy", Formula: "pairs whose margin is above 0, after the step", Healthy: "rises to 1"},
	{Name: "train/chosen_logprob_change", Formula: "mean over pairs of the sum of new - reference over the " +
		"chosen answer", Unit: "nats", Healthy: "not far below 0: otherwise the chosen answers become rare too"},
	{Name: "train/rejected_logprob_change", Formula: "the same of the rejected answer", Unit: "nats",
		Healthy: "falls"},
}

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
