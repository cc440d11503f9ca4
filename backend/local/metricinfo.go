package local

import (
	"slices"

	"github.com/goart-dev/art/backend/rundir"
	"github.com/goart-dev/art/grpo"
)

// Metrics describes the metrics of [Backend.Train], [Backend.TrainSFT] and [Backend.TrainDPO], which are those of row k
// for the update from step k to k+1. docs/metrics.md lists them.
func Metrics() []rundir.MetricInfo {
	var list []rundir.MetricInfo
	policy := grpo.Penalized{Loss: grpo.Corrected{Loss: grpo.PolicyLoss{}}, KL: 1, Entropy: 1}
	preference := grpo.PreferenceLoss{}
	for _, m := range slices.Concat(policy.Spec().Metrics, grpo.SupervisedLoss{}.Spec().Metrics,
		[]grpo.Metric{preference.Value()}, preference.Spec().Metrics, grpo.PreferenceMetrics) {
		list = append(list, rundir.MetricInfo{Name: m.Name, Formula: m.Formula, Unit: m.Unit, Healthy: m.Healthy})
	}
	return append(append(list, trainerMetrics...), dataMetrics...)
}

// trainerMetrics are those that the trainer measures.
var trainerMetrics = []rundir.MetricInfo{
	{Name: "loss/grad_norm", Formula: "mean over the optimizer steps of the global norm of the gradient, before clipping",
		Healthy: "steady; a rise of ten times comes before a collapse"},
	{Name: "loss/learning_rate", Formula: "that of the configuration; with a warm-up or a decay, the highest"},
	{Name: "loss/validation",
		Formula: "mean of -logprob over the targets of SFTConfig.Validation, after the step; absent without them",
		Unit:    "nats", Healthy: "falls; where it rises while loss/sft falls, stop"},
	{Name: "train/logprob_gap_max",
		Formula: "maximum of |trainer - sampler| of a token's logprob, before any update, over the " +
			"trained tokens that the step being trained sampled; absent when there are none", Unit: "nats",
		Healthy: "0 on the CPU device, below 0.1 on XLA"},
	{Name: "train/logprob_gap_mean", Formula: "the mean of the same", Unit: "nats", Healthy: "as the maximum"},
	{Name: "train/logprob_change_max",
		Formula: "maximum of |after - before the step| of a token's logprob, over the first 64 trained tokens " +
			"of one sequence in 32 of the batch, 1 to 4", Unit: "nats",
		Healthy: "above 0.004: less changes almost nothing, and is a warning"},
	{Name: "train/logprob_change_mean", Formula: "the mean of the same", Unit: "nats"},
	{Name: "train/restored_step",
		Formula: "the step that the next one is a copy of, see Model.Restore; its row has nothing else"},
	{Name: "offpolicy/logprob_diff_max",
		Formula: "maximum of |trainer - sampler| of a token's logprob, over trained tokens that " +
			"another step sampled: how far the policy has moved since; absent when there are none", Unit: "nats"},
	{Name: "offpolicy/logprob_diff_mean", Formula: "the mean of the same", Unit: "nats", Healthy: "below 0.1"},
	{Name: "offpolicy/token_weighted_policy_age_steps",
		Formula: "mean staleness: steps from the one that sampled a trained token to " +
			"the one being trained; negative for samples of a later step", Unit: "steps", Healthy: "below 3"},
	{Name: "offpolicy/policy_age_max_steps", Formula: "the maximum of the same", Unit: "steps"},
	{Name: "data/updates", Formula: "optimizer steps", Sum: true},
	{Name: "data/updates_skipped", Formula: "optimizer steps left out because their loss or gradient is not finite",
		Healthy: "0", Sum: true},
	{Name: "data/tokens_computed", Formula: "tokens that gradients were computed of, padding and epochs included",
		Unit: "tokens", Sum: true},
}

// dataMetrics are those of what is trained on, and of time.
var dataMetrics = []rundir.MetricInfo{
	{Name: "data/groups", Formula: "groups given", Sum: true},
	{Name: "data/groups_trainable", Formula: "groups trained on", Healthy: "above half of the groups given", Sum: true},
	{Name: "data/trajectories", Formula: "trajectories given", Sum: true},
	{Name: "data/trajectories_trained", Formula: "trajectories trained on", Sum: true},
	{Name: "data/skipped_<key>",
		Formula: "groups or trajectories that were not trained on, by credit.Reason; absent for none"},
	{Name: "data/tokens_sampled", Formula: "tokens that the model sampled for what was given", Unit: "tokens", Sum: true},
	{Name: "data/tokens_trained", Formula: "tokens in the loss, sampled ones or targets, in one epoch", Unit: "tokens",
		Sum: true},
	{Name: "data/tokens_truncated", Formula: "sampled tokens left out by MaskTruncated", Unit: "tokens",
		Healthy: "below a tenth of the tokens trained", Sum: true},
	{Name: "data/overlong_penalty_mean", Formula: "mean over the trajectories given of what Overlong adds to rewards",
		Healthy: "near 0"},
	{Name: "time/train_s", Formula: "duration of the training call", Unit: "s", Sum: true},
	{Name: "time/step_wall_s", Formula: "time since the step before was committed, or the model registered", Unit: "s",
		Sum: true},
	{Name: "time/rollout_s",
		Formula: "time between the step before and the training in which at least one rollout of the " +
			"groups ran; absent for none", Unit: "s", Sum: true},
	{Name: "time/judge_s", Formula: "time in which none ran and at least one of the groups was judged, by " +
		"GatherOptions.After; absent for none", Unit: "s", Healthy: "a small part of time/rollout_s", Sum: true},
	{Name: "throughput/train_tok_per_s", Formula: "data/tokens_computed / time/train_s", Unit: "tokens/s"},
	{Name: "throughput/rollout_tok_per_s",
		Formula: "data/tokens_sampled / (time/step_wall_s - time/train_s): sampled tokens over the " +
			"time between trainings", Unit: "tokens/s"},
	{Name: "memory/resident_bytes", Formula: "memory of the process in RAM, after the training; on Linux", Unit: "bytes",
		Healthy: "steady"},
	{Name: "memory/resident_max_bytes", Formula: "the most that it ever was", Unit: "bytes"},
	{Name: "memory/device_work_bytes",
		Formula: "what the device has for the intermediate results of its runs: as much as " +
			"the largest so far took; of the CPU device", Unit: "bytes", Healthy: "steady"},
	{Name: "device/programs", Formula: "programs that the device has compiled since it was opened; of XLA",
		Healthy: "steady after some steps"},
	{Name: "device/compile_s", Formula: "what that took, all together", Unit: "s", Healthy: "steady after some steps"},
}
