package trainer

import (
	"context"
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
	totals *grpo.Totals
	value  float64 // mean over updates of that of a grpo.BatchLoss
	report *Report
	probe  *probe // of the first update that was not skipped
}

func newTraining(s *Session, run Run) *training {
	spec := run.Loss.Spec()
	return &training{Session: s, run: run, spec: spec, totals: grpo.NewTotals(spec.Metrics), report: &Report{}}
}

// epochs makes the optimizer steps of a run.
func (t *training) epochs(ctx context.Context, batch []grpo.Sequence) error {
	run := &t.run
	lists := inseparable(batch, run.Loss)
	total := run.Epochs * min(run.MiniBatches, len(lists))
	for epoch := range run.Epochs {
		parts := credit.Split(lists, run.MiniBatches, rand.New(rand.NewPCG(run.Seed, uint64(epoch))))
		if epoch == 0 && t.spec.Sampled {
			if err := t.compareLater(ctx, parts[1:]); err != nil {
				return err
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
	t.note(part, p, norm, value)
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

// note adds an update that was made to the report.
func (t *training) note(part []grpo.Sequence, p *Pass, norm, value float64) {
	r := t.report
	if r.Updates == 0 {
		t.probe, r.First = newProbe(part, p.Logprobs), t.withValue(p.totals, value)
	}
	t.totals.AddUpdate(p.totals)
	t.value += (value - t.value) / float64(r.Updates+1)
	r.Norm += (norm - r.Norm) / float64(r.Updates+1)
	r.Updates++
	r.Metrics = t.withValue(t.totals, t.value)
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
