package credit

import (
	"math"
	"slices"
)

// Preference is the arithmetic of direct preference optimization (DPO) outside of a graph; grpo.PreferenceLoss has the
// formula and the sources. A batch is pairs: a chosen sequence, then a rejected one, both with reference logprobs.
type Preference struct {
	// Beta is how strongly the policy is kept close to the reference, above 0. There is no default here; 0.1 is usual,
	// and 5 with Mean.
	Beta float64
	// Smoothing is the chance that a pair is labelled the wrong way round, 0 up to below 0.5.
	Smoothing float64
	// Mean divides the log-ratio of a sequence by its number of trained tokens.
	Mean bool
}

// Validate lists every problem.
func (l Preference) Validate() error {
	var found problems
	found.check(l.Beta > 0 && finite(l.Beta), "credit: beta is %v, want a finite number > 0", l.Beta)
	found.check(l.Smoothing >= 0 && l.Smoothing < 0.5, "credit: smoothing is %v, want 0 <= smoothing < 0.5", l.Smoothing)
	return found.err()
}

// Linearize returns pairs with the derivatives of the loss as advantages, and the value of the loss: the mean over
// pairs. Weights are such that the mean over trained tokens is that of pairs. logprobs are those of the policy, a list
// for each sequence, per token. The pairs given stay as they are.
func (l Preference) Linearize(batch []Sequence, logprobs [][]float32) (linear []Sequence, value float64) {
	linear = slices.Clone(batch)
	pairs := float64(len(batch) / 2)
	weight := float64(NumTrained(batch)) / pairs // Mean divides by the number of tokens
	for i := 0; i < len(batch); i += 2 {
		margin := l.reward(&batch[i], logprobs[i]) - l.reward(&batch[i+1], logprobs[i+1])
		value += (1-l.Smoothing)*softplus(-margin) + l.Smoothing*softplus(margin)
		slope := 1/(1+math.Exp(-margin)) - 1 + l.Smoothing
		for k, sign := range []float64{-1, 1} {
			s := &linear[i+k]
			s.Advantage, s.Weight = sign*slope*l.scale(s), weight
		}
	}
	return linear, value / pairs
}

// reward returns the reward r that a policy implies for a sequence, from its logprobs, per token.
func (l Preference) reward(s *Sequence, logprobs []float32) float64 {
	return l.scale(s) * logRatio(s, logprobs)
}

// scale is the derivative of the reward with respect to a logprob.
func (l Preference) scale(s *Sequence) float64 {
	if l.Mean {
		return l.Beta / float64(s.NumTrained())
	}
	return l.Beta
}

// logRatio returns the sum over the trained tokens of a sequence of logprob - reference, in nats.
func logRatio(s *Sequence, logprobs []float32) float64 {
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

// Measure measures pairs under a policy, from its logprobs, per token. Means are over the pairs:
//
//	train/reward_margin            r of the chosen sequence - r of the rejected one
//	train/reward_accuracy          fraction whose margin is above 0
//	train/chosen_logprob_change    Σ over the chosen sequence of new - reference, nats
//	train/rejected_logprob_change  the same of the rejected one
func (l Preference) Measure(batch []Sequence, logprobs [][]float32) map[string]float64 {
	var margin, accuracy, chosen, rejected float64
	for i := 0; i < len(batch); i += 2 {
		m := l.reward(&batch[i], logprobs[i]) - l.reward(&batch[i+1], logprobs[i+1])
		margin += m
		if m > 0 {
			accuracy++
		}
		chosen += logRatio(&batch[i], logprobs[i])
		rejected += logRatio(&batch[i+1], logprobs[i+1])
	}
	pairs := float64(len(batch) / 2)
	return map[string]float64{
		"train/reward_margin": margin / pairs, "train/reward_accuracy": accuracy / pairs,
		"train/chosen_logprob_change": chosen / pairs, "train/rejected_logprob_change": rejected / pairs,
	}
}
