package art

// MetricInfo describes a metric for people.
type MetricInfo struct {
	// Name has the section as prefix: "loss/entropy". "<split>" stands for a split, "<key>" for any key.
	Name string
	// Formula says how it is computed.
	Formula string
	// Unit is empty for a count or a ratio.
	Unit string
	// Healthy says what it should be; empty where nothing can be said in general.
	Healthy string
	// Sum marks what is added up over the steps of a run, under the same section: "data/cum/tokens_sampled".
	Sum bool
}

// LogMetrics describes what [Model.Log] stores of groups, see [Metrics].
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
