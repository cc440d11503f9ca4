package trainer

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/goart-dev/art/grpo"
)

// probe is a few sequences of the first update of a run. Their logprobs before and after the run show whether the new
// parameters still compute finite numbers, and how far the policy has moved. Those before are those of the first
// update; the others cost a forward pass over one sequence in 32, at most four.
type probe struct {
	sequences []grpo.Sequence
	before    [][]float32 // logprobs of trained tokens, by sequence
}

const (
	probeEvery = 32 // one sequence of the probe for so many of the update
	probeMax   = 4
)

// newProbe picks the probe of an update, from the logprobs that it computed.
func newProbe(part []grpo.Sequence, logprobs [][]float32) *probe {
	at := probed(part)
	p := &probe{sequences: pick(part, at)}
	for i, k := range at {
		p.before = append(p.before, trainedOf(&p.sequences[i], logprobs[k]))
	}
	return p
}

// probed sorts a batch by length, cuts it into equal parts and picks the middle sequence of each.
func probed(batch []grpo.Sequence) (out []int) {
	sorted := indices(len(batch))
	slices.SortStableFunc(sorted, func(a, b int) int { return batch[a].NumInputs() - batch[b].NumInputs() })
	n := min(max(len(batch)/probeEvery, 1), probeMax)
	for i := range n {
		out = append(out, sorted[(2*i+1)*len(sorted)/(2*n)])
	}
	return out
}

// trainedOf returns the values of the trained tokens of a sequence.
func trainedOf(s *grpo.Sequence, perToken []float32) (out []float32) {
	for i, trained := range s.Trained {
		if trained {
			out = append(out, perToken[i])
		}
	}
	return out
}

// check reports a model that computes numbers that are not finite after a run, or the same logit for every token of the
// vocabulary, and measures how far logprobs have moved. Equal logits come of an overflow in a norm, which then divides
// by infinity.
func (p *probe) check(ctx context.Context, s *Session, run *Run, report *Report) error {
	all, err := s.trainer.logprobs(ctx, s.on.params, p.sequences, run.MicroBatch)
	if err != nil {
		return err
	}
	var after [][]float32
	for i := range p.sequences {
		after = append(after, trainedOf(&p.sequences[i], all[i]))
		for j, x := range after[i] {
			if !finite(float64(x)) {
				return fmt.Errorf("%w: after %d updates a logprob is %v", ErrDiverged, report.Updates, x)
			}
			report.Change.add(x, p.before[i][j])
		}
	}
	if v := s.trainer.target.config.VocabSize; uniform(after, v) && !uniform(p.before, v) {
		return fmt.Errorf("%w: after %d updates all tokens are equally likely", ErrDiverged, report.Updates)
	}
	return nil
}

// uniform reports whether all logprobs are those of equal logits, -ln(vocabulary), up to rounding.
func uniform(logprobs [][]float32, vocabulary int) bool {
	for _, list := range logprobs {
		for _, x := range list {
			if math.Abs(float64(x)+math.Log(float64(vocabulary))) > 2e-6 {
				return false
			}
		}
	}
	return true
}
