package trainer

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/goart-dev/art/grpo"
)

// probe is the beginning of a few sequences of the first update of a run. Their logprobs before and after the run show
// whether the new parameters still compute finite numbers, and how far the policy has moved. Those before are those of
// the first update; the others cost a forward pass of one sequence in 32, at most four, up to its 64th trained token.
type probe struct {
	sequences []grpo.Sequence
	before    [][]float32 // logprobs of trained tokens, by sequence
}

const (
	probeEvery  = 32 // one sequence of the probe for so many of the update
	probeMax    = 4
	probeTokens = 64 // trained ones of a sequence
)

// newProbe picks the probe of an update, from the logprobs that it computed.
func newProbe(part []grpo.Sequence, logprobs [][]float32) *probe {
	p := &probe{}
	for _, k := range probed(part) {
		s := beginning(part[k])
		p.sequences = append(p.sequences, s)
		p.before = append(p.before, trainedOf(&s, logprobs[k]))
	}
	return p
}

// probed sorts a batch, cuts it into equal parts and picks the first sequence of each. The most trained tokens of a
// probe come first, and then the fewest tokens that it reads.
func probed(batch []grpo.Sequence) (out []int) {
	trained, read := make([]int, len(batch)), make([]int, len(batch))
	for i := range batch {
		s := beginning(batch[i])
		trained[i], read[i] = s.NumTrained(), s.NumInputs()
	}
	sorted := indices(len(batch))
	slices.SortStableFunc(sorted, func(a, b int) int {
		return cmp.Or(cmp.Compare(trained[b], trained[a]), cmp.Compare(read[a], read[b]))
	})
	n := min(max(len(batch)/probeEvery, 1), probeMax)
	for i := range n {
		out = append(out, sorted[i*len(sorted)/n])
	}
	return out
}

// beginning is a sequence of which only the first tokens of a probe are trained. The model reads no more than it needs
// to predict these.
func beginning(s grpo.Sequence) grpo.Sequence {
	s.Trained = slices.Clone(s.Trained)
	n := 0
	for i, trained := range s.Trained {
		if trained {
			n++
		}
		s.Trained[i] = trained && n <= probeTokens
	}
	return s
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

// limit is the most sequences of a micro-batch: no more than there are, so that no row is padding. MicroBatch is that
// of a run; 0 is no bound.
func (p *probe) limit(microBatch int) int {
	if microBatch > 0 {
		return min(microBatch, len(p.sequences))
	}
	return len(p.sequences)
}

// check reports a model that computes numbers that are not finite after a run, or the same logit for every token of the
// vocabulary, and measures how far logprobs have moved. Equal logits come of an overflow in a norm, which then divides
// by infinity.
func (p *probe) check(ctx context.Context, s *Session, run *Run, report *Report) error {
	all, err := s.trainer.logprobs(ctx, s.on.params, p.sequences, p.limit(run.MicroBatch))
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
	if v := s.trainer.plan.Config.VocabSize; uniform(after, v) && !uniform(p.before, v) {
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
