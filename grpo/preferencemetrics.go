package grpo

// Measure measures pairs under a policy, from its logprobs, per token. Means are over the pairs:
//
//	train/reward_margin            r of the chosen sequence - r of the rejected one
//	train/reward_accuracy          fraction whose margin is above 0
//	train/chosen_logprob_change    Σ over the chosen sequence of new - reference, nats
//	train/rejected_logprob_change  the same of the rejected one
func (l PreferenceLoss) Measure(batch []Sequence, logprobs [][]float32) map[string]float64 {
	var margin, accuracy, chosen, rejected float64
	for i := 0; i < len(batch); i += 2 {
		m := l.Reward(&batch[i], logprobs[i]) - l.Reward(&batch[i+1], logprobs[i+1])
		margin += m
		if m > 0 {
			accuracy++
		}
		chosen += LogRatio(&batch[i], logprobs[i])
		rejected += LogRatio(&batch[i+1], logprobs[i+1])
	}
	pairs := float64(len(batch) / 2)
	return map[string]float64{
		"train/reward_margin": margin / pairs, "train/reward_accuracy": accuracy / pairs,
		"train/chosen_logprob_change": chosen / pairs, "train/rejected_logprob_change": rejected / pairs,
	}
}

// PreferenceMetrics describes those of [PreferenceLoss.Measure].
var PreferenceMetrics = []Metric{
	{Name: "train/reward_margin", Formula: "mean over pairs of the reward that the policy implies for the chosen " +
		"answer, less that of the rejected one, after the step; a reward is Beta * sum of new - reference", Healthy: "rises"},
	{Name: "train/reward_accuracy", Formula: "pairs whose margin is above 0, after the step", Healthy: "rises to 1"},
	{Name: "train/chosen_logprob_change", Formula: "mean over pairs of the sum of new - reference over the " +
		"chosen answer", Unit: "nats", Healthy: "not far below 0: otherwise the chosen answers become rare too"},
	{Name: "train/rejected_logprob_change", Formula: "the same of the rejected answer", Unit: "nats",
		Healthy: "falls"},
}
