package trainer

import (
	"context"
	"math/rand/v2"

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
	probe  *probe // of the first update
}

func newTraining(s *Session, run Run) *training {
	spec := run.Loss.Spec()
	return &training{Session: s, run: run, spec: spec, totals: grpo.NewTotals(spec.Metrics), report: &Report{}}
}

// epochs makes the optimizer steps of a run.
func (t *training) epochs(ctx context.Context, batch []grpo.Sequence) error {
	run := &t.run
	units := units(batch, run.Loss)
	total := run.Epochs * min(run.MiniBatches, len(units))
	for epoch := range run.Epochs {
		parts := credit.Split(units, run.MiniBatches, rand.New(rand.NewPCG(run.Seed, uint64(epoch))))
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

// update makes one optimizer step.
func (t *training) update(ctx context.Context, part []grpo.Sequence) error {
	part, value, err := t.linearize(ctx, part)
	if err != nil {
		return err
	}
	weighted, n := weighed(part)
	p, err := t.accumulate(ctx, weighted, lossCall{t.run.Loss, n, t.run.MicroBatch})
	if err != nil {
		return err
	}
	made := t.report.Updates + t.report.Skipped
	norm, ok, err := t.Update(t.run.Optimizer, t.run.Rate(made))
	if err != nil {
		return err
	}
	if made == 0 {
		t.probe = newProbe(part, p.Logprobs)
		if t.report.First = t.measured(p.totals, value); t.spec.Sampled {
			t.report.compare(part, p.Logprobs)
		}
	}
	t.note(part, p, norm, value, ok)
	return nil
}

// note adds an update to the report.
func (t *training) note(part []grpo.Sequence, p *Pass, norm, value float64, ok bool) {
	r := t.report
	r.Computed += p.Computed
	r.Recomputed += p.Recomputed
	if ok {
		t.totals.AddUpdate(p.totals)
		t.value += (value - t.value) / float64(r.Updates+1)
		r.Norm += (norm - r.Norm) / float64(r.Updates+1)
		r.Updates++
	} else {
		r.Skipped++
	}
	for _, i := range p.NotFinite {
		r.NotFinite = append(r.NotFinite, part[i].Trajectory)
	}
	r.Metrics = t.measured(t.totals, t.value)
}
