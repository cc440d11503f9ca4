package trainer

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/gomlx/gomlx/core/tensors"

	"github.com/goart-dev/art/grpo"
)

// probe is a few sequences of a batch. Their logprobs before and after a run show whether the new parameters still
// compute finite numbers, and how far the policy has moved. It costs two forward passes over one sequence in 32, at
// most four.
type probe struct {
	micro  []piece
	before [][]float32 // logprobs by micro-batch
}

const (
	probeEvery = 32 // one sequence of the probe for so many of the batch
	probeMax   = 4
)

// newProbe scores the probe of a batch before a run.
func (t *Trainer) newProbe(
	ctx context.Context, trained []*tensors.Tensor, batch []grpo.Sequence, limit int,
) (*probe, error) {
	micro, err := t.microBatches(probed(batch), limit)
	if err != nil {
		return nil, err
	}
	p := &probe{micro: micro}
	p.before, err = p.logprobs(ctx, t, trained)
	return p, err
}

// probed sorts a batch by length, cuts it into equal parts and picks the middle sequence of each.
func probed(batch []grpo.Sequence) []grpo.Sequence {
	sorted := slices.Clone(batch)
	slices.SortStableFunc(sorted, func(a, b grpo.Sequence) int { return a.NumInputs() - b.NumInputs() })
	n := min(max(len(batch)/probeEvery, 1), probeMax)
	var out []grpo.Sequence
	for i := range n {
		out = append(out, sorted[(2*i+1)*len(sorted)/(2*n)])
	}
	return out
}

// logprobs returns those of the trained tokens.
func (p *probe) logprobs(ctx context.Context, t *Trainer, trained []*tensors.Tensor) ([][]float32, error) {
	var list [][]float32
	err := t.score(ctx, trained, p.micro, func(i int, out *tensors.Tensor) error {
		values, err := tensors.CopyFlatData[float32](out)
		if err == nil {
			list = append(list, values[:p.micro[i].Tokens.NumReal])
		}
		return err
	})
	return list, err
}

// check reports a model that computes numbers that are not finite after a run, or the same logit for every token of the
// vocabulary, and measures how far logprobs have moved. Equal logits come of an overflow in a norm, which then divides
// by infinity.
func (p *probe) check(ctx context.Context, t *Trainer, trained []*tensors.Tensor, report *Report) error {
	after, err := p.logprobs(ctx, t, trained)
	if err != nil {
		return err
	}
	for i, list := range after {
		for j, x := range list {
			if !finite(float64(x)) {
				return fmt.Errorf("%w: after %d updates a logprob is %v", ErrDiverged, report.Updates, x)
			}
			report.Change.add(x, p.before[i][j])
		}
	}
	if v := t.target.config.VocabSize; uniform(after, v) && !uniform(p.before, v) {
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
