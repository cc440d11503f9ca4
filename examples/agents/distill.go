package agents

import (
	"context"
	"fmt"

	"github.com/goart-dev/art"
)

// Distillation is what a teacher's rollouts came to.
type Distillation struct {
	Rollouts, Failures int
	Kept               int // those that were trained on
	Skipped            []art.Skip
}

// Distill has a teacher, which may be a prompted model behind an API, work on the first n training scenarios with the
// same agent, and trains the model on its rollouts that are good enough: one supervised step, before reinforcement
// learning goes on from there. keep says which are; nil keeps those that a checker says are solved. The model must be
// at step 0.
func (t *Training[S]) Distill(
	ctx context.Context, teacher *art.Model, n int, keep func(*art.Trajectory) bool, cfg *art.SFTConfig,
) (*Distillation, error) {
	if err := t.prepare(); err != nil {
		return nil, err
	}
	if keep == nil && t.Checked {
		keep = func(x *art.Trajectory) bool { return x.Metrics["solved"] == 1 }
	}
	if keep == nil || t.Model.Step() > 0 || n < 1 {
		return nil, &art.Error{
			Op: "distill", Hint: "distill at step 0, with a rule for what to keep",
			Err: fmt.Errorf("%w: n is %d, the model is at step %d, keep or a checker is set: %v", art.ErrInvalid, n,
				t.Model.Step(), keep != nil),
		}
	}
	g, err := art.Gather(ctx, t.Train[:min(n, len(t.Train))], t.Rollout(teacher, &t.Chat), &art.GatherOptions{
		Concurrency: t.Concurrency, Seed: 1 << 33, Events: t.Events, MaxFailureFraction: t.MaxFailureFraction,
	})
	if err != nil {
		return nil, fmt.Errorf("teacher: %w", err)
	}
	d := &Distillation{Rollouts: len(g.Trajectories) + len(g.Failures), Failures: len(g.Failures)}
	var good []*art.Trajectory
	for _, x := range g.Trajectories {
		if keep(x) {
			good = append(good, x)
		}
	}
	if d.Kept = len(good); d.Kept == 0 {
		return d, &art.Error{Op: "distill", Err: fmt.Errorf("%w: no rollout of %s is good enough, of %d",
			art.ErrNoGroups, teacher.Name(), d.Rollouts),
			Hint: "take a stronger teacher, or easier scenarios"}
	}
	result, err := t.Model.TrainSFT(ctx, good, cfg)
	if err != nil {
		return d, err
	}
	d.Skipped = result.Skipped
	return d, nil
}
