package trainer

import (
	"math"

	"github.com/goart-dev/art/grpo"
)

// Difference summarises how much two logprobs of the same tokens differ, in nats. The zero value is of no tokens.
type Difference struct {
	Tokens   int
	Sum, Max float64 // of |a - b|
}

// Mean returns the mean |a - b|, or 0 when there are no tokens.
func (d *Difference) Mean() float64 { return d.Sum / float64(max(d.Tokens, 1)) }

func (d *Difference) add(a, b float32) {
	x := math.Abs(float64(a) - float64(b))
	d.Tokens, d.Sum, d.Max = d.Tokens+1, d.Sum+x, max(d.Max, x)
}

// compare adds the trained tokens of a batch, whose logprobs under the policy being trained are given: to Gap those
// that it sampled, to OffPolicy those of another step, to Ratios both.
func (r *Report) compare(batch []grpo.Sequence, logprobs [][]float32) {
	for i := range batch {
		s := &batch[i]
		for j, trained := range s.Trained {
			if !trained {
				continue
			}
			to := &r.Gap
			if s.Staleness != nil && s.Staleness[j] != 0 {
				to = &r.OffPolicy
			}
			to.add(logprobs[i][j], s.Logprobs[j])
			r.Ratios = append(r.Ratios, float32(math.Exp(float64(logprobs[i][j])-float64(s.Logprobs[j]))))
		}
	}
}
