package grpo

import (
	"errors"
	"fmt"
	"math"
	"slices"

	. "github.com/gomlx/gomlx/core/graph"
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
// Sources: Rafailov et al. 2023, https://arxiv.org/abs/2305.18290; Smoothing is conservative DPO, Mitchell 2023,
// https://ericmitchell.ai/cdpo.pdf; Mean is the length-normalised DPO of Tülu 3, https://arxiv.org/abs/2411.15124.
type PreferenceLoss struct {
	// Beta is how strongly the policy is kept close to the reference, above 0. There is no default here; 0.1 is usual,
	// and 5 with Mean.
	Beta float64
	// Smoothing is the chance that a pair is labelled the wrong way round, 0 up to below 0.5.
	Smoothing float64
	// Mean divides the log-ratio of a sequence by its number of trained tokens.
	Mean bool
}

var _ BatchLoss = PreferenceLoss{}

// Validate lists every problem.
func (l PreferenceLoss) Validate() error {
	var errs []error
	if !(l.Beta > 0 && finite(l.Beta)) {
		errs = append(errs, fmt.Errorf("grpo: beta is %v, want a finite number > 0", l.Beta))
	}
	if !(l.Smoothing >= 0 && l.Smoothing < 0.5) {
		errs = append(errs, fmt.Errorf("grpo: smoothing is %v, want 0 <= smoothing < 0.5", l.Smoothing))
	}
	return errors.Join(errs...)
}

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

// Linearize implements [BatchLoss]. batch is pairs.
func (l PreferenceLoss) Linearize(batch []Sequence, logprobs [][]float32) (linear []Sequence, value float64) {
	linear = slices.Clone(batch)
	pairs := float64(len(batch) / 2)
	weight := float64(NumTrained(batch)) / pairs // Mean divides by the number of tokens
	for i := 0; i < len(batch); i += 2 {
		margin := l.Reward(&batch[i], logprobs[i]) - l.Reward(&batch[i+1], logprobs[i+1])
		value += (1-l.Smoothing)*softplus(-margin) + l.Smoothing*softplus(margin)
		slope := 1/(1+math.Exp(-margin)) - 1 + l.Smoothing
		for k, sign := range []float64{-1, 1} {
			s := &linear[i+k]
			s.Advantage, s.Weight = sign*slope*l.scale(s), weight
		}
	}
	return linear, value / pairs
}

// Reward returns the reward r that a policy implies for a sequence, from its logprobs, per token.
func (l PreferenceLoss) Reward(s *Sequence, logprobs []float32) float64 {
	return l.scale(s) * LogRatio(s, logprobs)
}

// scale is the derivative of the reward with respect to a logprob.
func (l PreferenceLoss) scale(s *Sequence) float64 {
	if l.Mean {
		return l.Beta / float64(s.NumTrained())
	}
	return l.Beta
}

// LogRatio returns the sum over the trained tokens of a sequence of logprob - reference, in nats.
func LogRatio(s *Sequence, logprobs []float32) float64 {
	sum := 0.0
	for i, trained := range s.Trained {
		if trained {
			sum += float64(logprobs[i]) - float64(s.Reference[i])
		}
	}
	return sum
}

// softplus is log(1 + exp(x)) = -log σ(-x), without overflow.
func softplus(x float64) float64 { return max(x, 0) + math.Log1p(math.Exp(-math.Abs(x))) }
