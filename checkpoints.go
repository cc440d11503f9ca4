package art

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
)

// DeleteCheckpoints deletes the model's checkpoints but the latest and the best: the policy for which the mean of the
// logged metric is highest, the later one of equals. A row of any split is about the policy of its step, see
// [Model.Log]. A metric of "" stands for "val/reward", and for the latest only when that was never logged.
//
// It returns [ErrNotRegistered], [ErrUnsupported] when the backend is no [CheckpointKeeper], and [ErrInvalid], deleting
// nothing, when a given metric was never logged for a stored step.
func (m *Model) DeleteCheckpoints(ctx context.Context, metric string) error {
	keeper, err := capability[CheckpointKeeper](m, "delete checkpoints", "art.CheckpointKeeper, such as backend/local")
	if err != nil {
		return err
	}
	steps, err := keeper.Checkpoints(ctx, m)
	if err != nil || len(steps) == 0 {
		return err
	}
	rows, err := keeper.History(ctx, m)
	if err != nil {
		return err
	}
	keep := []int{slices.Max(steps)}
	best, ok := bestStep(rows, steps, cmp.Or(metric, "val/reward"))
	if !ok && metric != "" {
		return &Error{"delete checkpoints", fmt.Errorf("%w: no stored step has the metric %q", ErrInvalid, metric),
			`name a logged metric with its split, like "val/reward"`}
	}
	if ok && best != keep[0] {
		keep = []int{best, keep[0]}
	}
	return keeper.DeleteCheckpoints(ctx, m, keep)
}

// bestStep returns the step, among those stored, with the highest mean of metric. ok is false when none has it.
func bestStep(rows []HistoryRow, steps []int, metric string) (best int, ok bool) {
	byStep := map[int]mean{}
	for _, row := range rows {
		if x, has := row.Metrics[metric]; has && !math.IsNaN(x) && slices.Contains(steps, row.Step) {
			v := byStep[row.Step]
			v.add(x)
			byStep[row.Step] = v
		}
	}
	for step, v := range byStep {
		order := 1
		if ok {
			order = cmp.Or(cmp.Compare(v.value(), byStep[best].value()), cmp.Compare(step, best))
		}
		if order > 0 {
			best, ok = step, true
		}
	}
	return best, ok
}
