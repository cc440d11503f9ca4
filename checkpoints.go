package art

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
)

// Retention says which checkpoints a run keeps. It is applied whenever a step is committed. The newest is always kept.
type Retention struct {
	// Newest is how many of the newest are kept. Default 1.
	Newest int
	// Best is a metric with its split, "val/reward": the step for which its mean is highest is kept too, see
	// [Model.DeleteCheckpoints]. Before the metric is logged for the first time, nothing is deleted.
	Best string
	// Every keeps the steps that are multiples of it. Default 0: none.
	Every int
}

// Keep returns the steps to keep, of those stored, in ascending order. rows are the history of the run.
func (r *Retention) Keep(steps []int, rows []HistoryRow) []int {
	sorted := slices.Sorted(slices.Values(steps))
	best := -1
	if r.Best != "" {
		var ok bool
		if best, ok = bestStep(rows, sorted, r.Best); !ok {
			return sorted
		}
	}
	from := len(sorted) - max(1, r.Newest)
	var keep []int
	for i, step := range sorted {
		if i >= from || step == best || r.Every > 0 && step%r.Every == 0 {
			keep = append(keep, step)
		}
	}
	return keep
}

func (r *Retention) validate(p *problems) {
	if r == nil {
		return
	}
	p.check(r.Newest >= 0, "retention: Newest is %d, want >= 0", r.Newest)
	p.check(r.Every >= 0, "retention: Every is %d, want >= 0", r.Every)
	p.check(r.Best == "" || strings.Contains(r.Best, "/"), `retention: Best is %q, want a metric with its split, "val/%s"`,
		r.Best, r.Best)
}

// BestStep returns the stored step of m for which the mean of the logged metric is highest, the later one of equals. A
// metric of "" stands for "val/reward".
//
// It returns [ErrNotRegistered], [ErrUnsupported] when the backend is no driver.CheckpointKeeper, and [ErrInvalid]
// when the metric was never logged for a stored step.
func (m *Model) BestStep(ctx context.Context, metric string) (int, error) {
	const op = "best step"
	keeper, err := capability[checkpointKeeper](m, op, "driver.CheckpointKeeper")
	if err != nil {
		return 0, err
	}
	steps, err := keeper.Checkpoints(ctx, m)
	if err != nil {
		return 0, err
	}
	rows, err := keeper.History(ctx, m)
	if err != nil {
		return 0, err
	}
	return BestStep(rows, steps, metric)
}

// BestStep returns the step, among steps, for which the mean of the metric over rows is highest, the later one of
// equals. A metric of "" stands for "val/reward". It is an [ErrInvalid] when no row of these steps has the metric.
func BestStep(rows []HistoryRow, steps []int, metric string) (int, error) {
	metric = cmp.Or(metric, "val/reward")
	best, ok := bestStep(rows, steps, metric)
	if !ok {
		// The caller may have meant what was logged under another split.
		name, hint := metric[strings.LastIndex(metric, "/")+1:], `name a logged metric with its split, like "val/reward"`
		others := map[string]bool{}
		for _, row := range rows {
			for key := range row.Metrics {
				if strings.HasSuffix(key, "/"+name) && key != metric {
					others[key] = true
				}
			}
		}
		if len(others) > 0 {
			hint = "logged are " + strings.Join(slices.Sorted(maps.Keys(others)), ", ")
		}
		return 0, &Error{"best step", fmt.Errorf("%w: no stored step has the metric %q", ErrInvalid, metric), hint}
	}
	return best, nil
}

// DeleteCheckpoints deletes the model's checkpoints but the latest and the best: the policy for which the mean of the
// logged metric is highest, the later one of equals. A row of any split is about the policy of its step, see
// [Model.Log]. A metric of "" stands for "val/reward", and for the latest only when that was never logged.
// [ModelOptions].Retention does the like at every step.
//
// It returns [ErrNotRegistered], [ErrUnsupported] when the backend is no driver.CheckpointKeeper, and [ErrInvalid],
// deleting nothing, when a given metric was never logged for a stored step.
func (m *Model) DeleteCheckpoints(ctx context.Context, metric string) error {
	keeper, err := capability[checkpointKeeper](m, "delete checkpoints", "driver.CheckpointKeeper")
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
	best, err := BestStep(rows, steps, metric)
	if err != nil && metric != "" {
		return err
	}
	keep := []int{slices.Max(steps)}
	if err == nil && best != keep[0] {
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

// Restore goes back to a stored step, such as that of [Model.BestStep]: it makes the next step a copy of it, weights
// and optimizer, and returns its number. Nothing is deleted: the steps in between keep their checkpoints, rows and
// trajectories. Row k of split "train", before the copy, has the metric "train/restored_step".
//
// It returns [ErrNotRegistered], [ErrFrozen], [ErrUnsupported] when the backend is no driver.CheckpointRestorer, and
// [ErrInvalid] for a step without a checkpoint.
func (m *Model) Restore(ctx context.Context, step int) (next int, err error) {
	restorer, err := trainable[checkpointRestorer](m, "restore", "driver.CheckpointRestorer")
	if err != nil {
		return 0, err
	}
	next, err = restorer.Restore(ctx, m, step)
	if err != nil {
		return 0, err
	}
	m.reached(next)
	return next, nil
}

// SaveState stores user state with the run, such as the position in a dataset. It merges the JSON of patch into the
// stored state (RFC 7396): objects are merged key by key, at any depth; null deletes a key; any other value replaces.
// The state is on disk when it returns. It belongs to the run and not to a step: save it after [Model.Train].
//
// It returns [ErrNotRegistered], [ErrUnsupported] when the backend is no driver.StateKeeper, and [ErrInvalid] for
// what has no JSON.
func (m *Model) SaveState(ctx context.Context, patch any) error {
	keeper, err := capability[stateKeeper](m, "save state", "driver.StateKeeper")
	if err != nil {
		return err
	}
	return keeper.SaveState(ctx, m, patch)
}

// LoadState reads what [Model.SaveState] has stored into v, a pointer, as [json.Unmarshal] does. It returns false, and
// does not change v, when there is none.
func (m *Model) LoadState(ctx context.Context, v any) (found bool, err error) {
	keeper, err := capability[stateKeeper](m, "load state", "driver.StateKeeper")
	if err != nil {
		return false, err
	}
	return keeper.LoadState(ctx, m, v)
}
