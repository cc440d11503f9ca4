package trainer

import (
	"context"
	"math/rand/v2"

	"github.com/goart-dev/art/grpo"
)

// training is a run under way.
type training struct {
	*Trainer
	run    Run
	spec   grpo.LossSpec
	state  *State       // at the beginning
	on     *deviceState // as it is now
	totals *grpo.Totals
	value  float64 // mean over updates of that of a grpo.BatchLoss
	report *Report
}

func (t *Trainer) newTraining(run Run, state *State, on *deviceState) *training {
	spec := run.Loss.Spec()
	return &training{
		Trainer: t, run: run, spec: spec, state: state, on: on, totals: grpo.NewTotals(spec.Metrics), report: &Report{},
	}
}

// epochs makes the optimizer steps of a run.
func (t *training) epochs(ctx context.Context, batch []grpo.Sequence) error {
	run := &t.run
	units := units(batch, run.Loss)
	total := run.Epochs * min(run.MiniBatches, len(units))
	for epoch := range run.Epochs {
		parts := split(units, run.MiniBatches, rand.New(rand.NewPCG(run.Seed, uint64(epoch))))
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
	grads, totals, err := t.gradient(ctx, part)
	if err != nil {
		return err
	}
	r := t.report
	n := r.Updates + r.Skipped
	norm, ok, err := t.apply(t.state, t.on, grads, t.run.Optimizer, t.run.Rate(n))
	if err != nil {
		return err
	}
	if n == 0 {
		r.First = t.measured(totals, value)
	}
	if ok {
		t.totals.AddUpdate(totals)
		t.value += (value - t.value) / float64(r.Updates+1)
		r.Norm += (norm - r.Norm) / float64(r.Updates+1)
		r.Updates++
	} else {
		r.Skipped++
	}
	r.Metrics = t.measured(t.totals, t.value)
	return nil
}

// split shuffles the units of a batch and cuts it into n parts whose numbers of units differ by at most one.
func split(units [][]grpo.Sequence, n int, rng *rand.Rand) [][]grpo.Sequence {
	n = min(n, len(units))
	order := rng.Perm(len(units))
	parts := make([][]grpo.Sequence, n)
	for i, at := range order {
		parts[i*n/len(order)] = append(parts[i*n/len(order)], units[at]...)
	}
	return parts
}
