package rundir

// MetricInfo documents a metric.
type MetricInfo struct {
	// Name has the section as prefix: "loss/entropy". "<split>" stands for a split, "<key>" for any key.
	Name string
	// Formula says how it is computed.
	Formula string
	// Unit is empty for a count or a ratio.
	Unit string
	// Healthy says what to expect of a good run; empty where that depends on the task.
	Healthy string
	// Sum is set when it is also summed over the steps of a run, in the same section: "data/cum/tokens_sampled".
	Sum bool
}

// LogMetrics describes what [art.Model.Log] stores of groups, see [art.Metrics].
func LogMetrics() []MetricInfo {
	return []MetricInfo{
		{Name: "<split>/reward", Formula: "mean over the trajectories", Healthy: "rises"},
		{Name: "<split>/reward_std_dev",
			Formula: "mean over the groups of two or more of their population standard deviation",
			Healthy: "above 0: without differences nothing is learned"},
		{Name: "<split>/exception_rate", Formula: "failures / (failures + trajectories)", Healthy: "below 0.05"},
		{Name: "<split>/duration", Formula: "mean over the trajectories whose Duration is set", Unit: "s"},
		{Name: "<split>/<key>", Formula: "mean over the trajectories that have the metric"},
		{Name: "<split>/group_<key>", Formula: "mean over the groups that have the metric"},
		{Name: "<split>/nan_values", Formula: "values that are NaN, which the means leave out; absent for none",
			Healthy: "absent"},
	}
}

// PipelineMetrics describes what a [art.Pipeline] stores beside the metrics of trainings and evaluations. Those of row
// k of split "train" are about the time from the beginning of the training before to that of the training of step k.
func PipelineMetrics() []MetricInfo {
	return []MetricInfo{
		{Name: "pipeline/reward", Formula: "mean over the trajectories that ended, those of dropped groups included",
			Healthy: "rises"},
		{Name: "pipeline/staleness_mean", Formula: "mean over the groups trained on of the steps from the one at which the " +
			"first rollout of the group began to the one being trained", Unit: "steps",
			Healthy: "below 2; offpolicy/token_weighted_policy_age_steps tells it by token"},
		{Name: "pipeline/staleness_max", Formula: "the maximum of the same", Unit: "steps", Healthy: "at most MaxStaleness"},
		{Name: "pipeline/dropped_<key>", Formula: "groups that were not trained on, by credit.Reason; absent for none",
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
