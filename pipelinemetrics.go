package art

import (
	"maps"
	"time"
)

// PipelineMetrics describes what a [Pipeline] stores beside the metrics of trainings and evaluations. Those of row k of
// split "train" are about the time from the beginning of the training before to that of the training of step k.
func PipelineMetrics() []MetricInfo {
	return []MetricInfo{
		{Name: "pipeline/reward", Formula: "mean over the trajectories that ended, those of dropped groups included",
			Healthy: "rises"},
		{Name: "pipeline/staleness_mean", Formula: "mean over the groups trained on of the steps from the one at which the " +
			"first rollout of the group began to the one being trained", Unit: "steps",
			Healthy: "below 2; offpolicy/token_weighted_policy_age_steps tells it by token"},
		{Name: "pipeline/staleness_max", Formula: "the maximum of the same", Unit: "steps", Healthy: "at most MaxStaleness"},
		{Name: "pipeline/dropped_<key>", Formula: "groups that were not trained on, by art.SkipReason; absent for none",
			Healthy: "stale: few; no_variance: fewer than the groups trained on"},
		{Name: "pipeline/rollouts_running", Formula: "mean number of rollouts that ran at once; absent for a source",
			Healthy: "near Concurrency: otherwise MaxStaleness or Groups holds rollouts up"},
		{Name: "pipeline/rollouts_failed", Formula: "rollouts that failed", Healthy: "0"},
		{Name: "pipeline/rollouts_cut",
			Formula: "rollouts that were cut when their group was complete; absent without Extra"},
		{Name: "pipeline/rollout_tok_per_s", Formula: "tokens sampled in the trajectories that ended / time. " +
			"throughput/rollout_tok_per_s is about rollouts between trainings, and means nothing here", Unit: "tokens/s"},
		{Name: "pipeline/groups_waiting", Formula: "groups that had ended and were not taken, when the training began",
			Healthy: "few: otherwise training holds rollouts up"},
		{Name: "time/trainer_idle_s", Formula: "time from the step before to the beginning of the training", Unit: "s",
			Healthy: "near 0: otherwise rollouts hold training up"},
		{Name: "time/eval_s", Formula: "duration of the evaluation; in the row of split val", Unit: "s"},
	}
}

// window is what happened between two trainings.
type window struct {
	start     time.Time
	rewards   mean
	tokens    int
	cut       int
	dropped   map[SkipReason]int
	discarded []*TrajectoryGroup
	failures  failures
	closed    *closedWindow // the one before
}

// closedWindow is what is logged of a window.
type closedWindow struct {
	metrics   map[string]float64
	discarded []*TrajectoryGroup
}

func newWindow() window { return window{start: time.Now(), dropped: map[SkipReason]int{}} }

// add counts a draw that has ended.
func (w *window) add(d *draw) {
	for _, g := range d.groups {
		w.cut += int(g.Metrics["rollouts_cut"])
		for _, t := range g.Trajectories {
			if t != nil {
				w.rewards.add(t.Reward)
				w.tokens += sampledTokens(t)
			}
		}
	}
	w.failures.add(d)
}

// close begins another window, when the training of a step begins.
func (w *window) close(step int, committed time.Time, p *pipeline) {
	now := time.Now()
	metrics := map[string]float64{
		"pipeline/rollouts_failed": float64(w.failures.failed),
		"pipeline/groups_waiting":  float64(numGroups(p.ready)),
		"time/trainer_idle_s":      now.Sub(committed).Seconds(),
	}
	if w.rewards.n > 0 {
		metrics["pipeline/reward"] = w.rewards.value()
	}
	seconds := now.Sub(w.start).Seconds()
	if seconds > 0 {
		metrics["pipeline/rollout_tok_per_s"] = float64(w.tokens) / seconds
	}
	if busy, ok := p.supply.busy(); ok && seconds > 0 {
		metrics["pipeline/rollouts_running"] = busy.Seconds() / seconds
	}
	if p.opts.Gather.Extra > 0 {
		metrics["pipeline/rollouts_cut"] = float64(w.cut)
	}
	for reason, n := range w.dropped {
		metrics["pipeline/dropped_"+string(reason)] = float64(n)
	}
	maps.Copy(metrics, staleness(step, p.batch))
	closed := &closedWindow{metrics, w.discarded}
	*w = newWindow()
	w.closed = closed
}

// staleness describes the age of the groups that a step is trained on.
func staleness(step int, batch []*draw) map[string]float64 {
	var ages mean
	oldest := 0
	for _, d := range batch {
		ages.add(float64(d.age(step)))
		oldest = max(oldest, d.age(step))
	}
	return map[string]float64{"pipeline/staleness_mean": ages.value(), "pipeline/staleness_max": float64(oldest)}
}
