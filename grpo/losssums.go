package grpo

import "fmt"

// NumLossSums is the length of [LossMetrics.Vector].
const NumLossSums = 7

// LossSums are [LossMetrics] read from the device, and their sums over the micro-batches of an optimizer step.
type LossSums struct {
	Loss, Clipped, GapSum, GapMax, KL, Entropy, Tokens float64
}

// ReadLossSums reads the values of [LossMetrics.Vector].
func ReadLossSums(values []float32) (LossSums, error) {
	if len(values) != NumLossSums {
		return LossSums{}, fmt.Errorf("grpo: %d loss metrics, want %d", len(values), NumLossSums)
	}
	v := func(i int) float64 { return float64(values[i]) }
	return LossSums{Loss: v(0), Clipped: v(1), GapSum: v(2), GapMax: v(3), KL: v(4), Entropy: v(5), Tokens: v(6)}, nil
}

// Add adds the sums of another micro-batch.
func (s *LossSums) Add(o LossSums) {
	s.Loss += o.Loss
	s.Clipped += o.Clipped
	s.GapSum += o.GapSum
	s.GapMax = max(s.GapMax, o.GapMax)
	s.KL += o.KL
	s.Entropy += o.Entropy
	s.Tokens += o.Tokens
}

// Metrics returns what is logged of an optimizer step; means are over its trained tokens.
//
//	loss/policy             the loss
//	loss/entropy            mean -new, nats
//	loss/kl_old_new         mean k3 estimate of KL(old ‖ new), nats
//	ratio/clipped_frac      share of tokens whose importance ratio lies outside of the bounds
//	ratio/logprob_diff_mean mean |new - old|, nats: what the importance ratio is exp of, from whatever cause
//	ratio/logprob_diff_max  max |new - old|, nats
//	train/tokens            trained tokens
func (s LossSums) Metrics() map[string]float64 {
	n := max(s.Tokens, 1)
	return map[string]float64{
		"loss/policy":             s.Loss,
		"loss/entropy":            s.Entropy / n,
		"loss/kl_old_new":         s.KL / n,
		"ratio/clipped_frac":      s.Clipped / n,
		"ratio/logprob_diff_mean": s.GapSum / n,
		"ratio/logprob_diff_max":  s.GapMax,
		"train/tokens":            s.Tokens,
	}
}
