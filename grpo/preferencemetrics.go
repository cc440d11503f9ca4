package grpo

// PreferenceMetrics describes those of credit.Preference.Measure.
var PreferenceMetrics = []Metric{
	{Name: "train/reward_margin", Formula: "mean over pairs of the reward that the policy implies for the chosen " +
		"answer, less that of the rejected one, after the step; a reward is Beta * sum of new - reference", Healthy: "rises"},
	{Name: "train/reward_accuracy", Formula: "pairs whose margin is above 0, after the step", Healthy: "rises to 1"},
	{Name: "train/chosen_logprob_change", Formula: "mean over pairs of the sum of new - reference over the " +
		"chosen answer", Unit: "nats", Healthy: "not far below 0: otherwise the chosen answers become rare too"},
	{Name: "train/rejected_logprob_change", Formula: "the same of the rejected answer", Unit: "nats",
		Healthy: "falls"},
}
