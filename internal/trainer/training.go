package trainer

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/goart-dev/art/grpo"
	"github.com/goart-dev/art/grpo/credit"
)

// training is a run under way.
type training struct {
	*Session
	run    Run
	spec   grpo.LossSpec
	totals *totals
	value  float64 // mean over updates of that of a grpo.BatchLoss
	report *Report
	probe  *probe // of the first update that was not skipped
}

func newTraining(s *Session, run Run) *training {
	spec := run.Loss.Spec()
	return &training{Session: s, run: run, spec: spec, totals: newTotals(spec.Metrics), report: &Report{}}
}

// epochs makes the optimizer steps of a run.
func (t *training) epochs(ctx context.Context, batch []grpo.Sequence) error {
	run := &t.run
	lists := inseparable(batch, run.Loss)
	total := run.Epochs * min(run.MiniBatches, len(lists))
	for epoch := range run.Epochs {
		parts := credit.Split(lists, run.MiniBatches, rand.New(rand.NewPCG(run.Seed, uint64(epoch))))
		// The gradient of the first mini-batch yields its logprobs at no cost. To compare those of the others with the
		// sampler's takes a forward pass before the first update: after it their logprobs are those of another policy. They
		// are packed as for their gradients, so that few layouts occur.
		if epoch == 0 && t.spec.Sampled {
			for _, part := range parts[1:] {
				logprobs, err := t.trainer.logprobs(ctx, t.on.params, part, run.MicroBatch)
				if err != nil {
					return err
				}
				t.report.compare(part, logprobs)
			}
		}
		for _, part := range parts {
			if err := t.update(ctx, part); err != nil {
				return err
			}
			if run.Progress != nil {
				run.Progress(total, *t.report)
			}
		}
	}
	return nil
}

// update makes one optimizer step, or skips it.
func (t *training) update(ctx context.Context, part []grpo.Sequence) error {
	if notFinite := incomparable(part); len(notFinite) > 0 {
		t.report.skip(part, notFinite, false)
		return nil
	}
	part, value, notFinite, err := t.linearize(ctx, part)
	if err != nil {
		return err
	}
	if len(notFinite) > 0 {
		t.report.skip(part, notFinite, false)
		return nil
	}
	weighted, n := averaged(part)
	p, err := t.accumulate(ctx, weighted, lossCall{t.run.Loss, n, t.run.MicroBatch})
	if err != nil {
		return err
	}
	made := t.report.Updates + t.report.Skipped
	norm, ok, err := t.Update(t.run.Optimizer, t.run.Rate(made))
	if err != nil {
		return err
	}
	t.report.Computed += p.Computed
	t.report.Recomputed += p.Recomputed
	if made == 0 && t.spec.Sampled {
		t.report.compare(part, p.Logprobs)
	}
	if !ok {
		t.report.skip(part, p.NotFinite, p.Overflowed)
		return nil
	}
	r := t.report
	if r.Updates == 0 {
		t.probe, r.First = newProbe(part, p.Logprobs), t.withValue(p.totals, value)
	}
	t.totals.addUpdate(p.totals)
	t.value += (value - t.value) / float64(r.Updates+1)
	r.Norm += (norm - r.Norm) / float64(r.Updates+1)
	r.Updates++
	r.Metrics = t.withValue(t.totals, t.value)
	return nil
}

// incomparable returns the sequences whose logprobs under the policy before the update, or under the reference, are not
// finite: nor is a loss of them.
func incomparable(part []grpo.Sequence) (list []int) {
	for i := range part {
		for _, logprobs := range [][]float32{part[i].Old, part[i].Reference} {
			if logprobs != nil && !allFinite(trainedOf(&part[i], logprobs)) {
				list = append(list, i)
				break
			}
		}
	}
	return list
}

func allFinite(list []float32) bool {
	return !slices.ContainsFunc(list, func(x float32) bool { return !finite(float64(x)) })
}

// skip adds an update to the report that was skipped because of some of its sequences, or, overflowed, because of the
// sum of what all of them have.
func (r *Report) skip(part []grpo.Sequence, notFinite []int, overflowed bool) {
	r.Skipped++
	to := &r.NotFinite
	if overflowed {
		to = &r.Overflowed
	}
	for _, i := range notFinite {
		*to = append(*to, part[i].Trajectory)
	}
}

// A loss of pairs of sequences, or of a whole batch, cannot be summed over micro-batches. A [grpo.BatchLoss] is
// therefore replaced, before each optimizer step, by the linear function of the logprobs that has the same gradient at
// the current parameters.

// linearize replaces the loss of the sequences of one optimizer step: it returns them with the derivatives of the loss
// as advantages, and the value of the loss. If that or a derivative is not finite, so that the step must be skipped,
// notFinite are the sequences to blame. It costs a forward pass. Losses that can be summed are left as they are.
func (t *training) linearize(
	ctx context.Context, batch []grpo.Sequence,
) (linear []grpo.Sequence, value float64, notFinite []int, err error) {
	loss, ok := t.run.Loss.(grpo.BatchLoss)
	if !ok {
		return batch, 0, nil, nil
	}
	logprobs, err := t.trainer.logprobs(ctx, t.on.params, batch, t.run.MicroBatch)
	if err != nil {
		return nil, 0, nil, err
	}
	linear, value = loss.Linearize(batch, logprobs)
	return linear, value, blamed(linear, value, logprobs), nil
}

// blamed returns the sequences because of which the value of a linearized loss or one of its derivatives is not finite:
// those with a logprob that is not finite; if there are none, those with such a derivative; if there are none either,
// all of them. It returns nothing when the value and the derivatives are finite.
func blamed(linear []grpo.Sequence, value float64, logprobs [][]float32) []int {
	derivatives := slices.DeleteFunc(indices(len(linear)), func(i int) bool { return finite(linear[i].Advantage) })
	if len(derivatives) == 0 && finite(value) {
		return nil
	}
	inputs := slices.DeleteFunc(indices(len(linear)), func(i int) bool {
		return allFinite(trainedOf(&linear[i], logprobs[i]))
	})
	switch {
	case len(inputs) > 0:
		return inputs
	case len(derivatives) > 0:
		return derivatives
	}
	return indices(len(linear))
}

// withValue returns the metrics of totals. Those of a [grpo.BatchLoss] have the value of the loss too.
func (t *training) withValue(totals *totals, value float64) map[string]float64 {
	metrics := totals.logged()
	if loss, ok := t.run.Loss.(grpo.BatchLoss); ok {
		metrics[loss.Value().Name] = value
	}
	return metrics
}

// together is how many consecutive sequences of a batch must be in the same optimizer step: 2 for a loss of pairs.
func together(loss grpo.Loss) int {
	if l, ok := loss.(grpo.BatchLoss); ok {
		return l.Together()
	}
	return 1
}

// inseparable cuts a batch into the lists of sequences that must be in the same optimizer step.
func inseparable(batch []grpo.Sequence, loss grpo.Loss) [][]grpo.Sequence {
	return slices.Collect(slices.Chunk(batch, together(loss)))
}

// checkComplete reports a batch that ends within such a list: with half a pair, for example.
func checkComplete(batch []grpo.Sequence, loss grpo.Loss) error {
	if n := together(loss); len(batch)%n != 0 {
		return fmt.Errorf("trainer: %d sequences, the loss takes %d together", len(batch), n)
	}
	return nil
}

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
