package local

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/rundir"
	"github.com/goart-dev/art/grpo"
	"github.com/goart-dev/art/internal/graphx"
	"github.com/goart-dev/art/internal/machine"
	"github.com/goart-dev/art/internal/trainer"
	"github.com/goart-dev/art/internal/trainset"
)

// reportMetrics are the metrics of the loss and of the trainer. Those of the loss are of updates that were not skipped,
// and left out when all were.
func reportMetrics(r trainer.Report) map[string]float64 {
	metrics := map[string]float64{}
	if maps.Copy(metrics, r.Metrics); r.Updates > 0 {
		metrics["loss/grad_norm"] = r.Norm
	}
	for name, d := range map[string]trainer.Difference{
		"train/logprob_gap": r.Gap, "offpolicy/logprob_diff": r.OffPolicy, "train/logprob_change": r.Change,
	} {
		if d.Tokens > 0 {
			metrics[name+"_mean"], metrics[name+"_max"] = d.Mean(), d.Max
		}
	}
	metrics["data/updates"] = float64(r.Updates)
	metrics["data/updates_skipped"] = float64(r.Skipped)
	metrics["data/tokens_computed"] = float64(r.Computed)
	return metrics
}

// complete adds to the metrics of a step on groups what the process and the device take after the training, what the
// step took from start on, the beginning of the training, how fast it was, and the sums over the steps up to this one.
func (b *Backend) complete(e *entry, metrics map[string]float64, groups []*art.TrajectoryGroup, start time.Time) error {
	if now, peak, known := machine.Resident(os.DirFS("/")); known {
		metrics["memory/resident_bytes"], metrics["memory/resident_max_bytes"] = float64(now), float64(peak)
	}
	if programs, took := graphx.Compiled(b.device); programs > 0 {
		metrics["device/programs"], metrics["device/compile_s"] = float64(programs), took.Seconds()
	}
	if b.memory.Held != nil {
		if held := b.memory.Held(); held > 0 {
			metrics["memory/device_work_bytes"] = float64(held)
		}
	}
	rollouts, judging := trainset.Times(groups, e.committed, start)
	for key, took := range map[string]time.Duration{"time/rollout_s": rollouts, "time/judge_s": judging} {
		if took > 0 {
			metrics[key] = took.Seconds()
		}
	}
	now := time.Now()
	train, wall := now.Sub(start).Seconds(), now.Sub(e.committed).Seconds()
	metrics["time/train_s"], metrics["time/step_wall_s"] = train, wall
	if tokens := metrics["data/tokens_computed"]; tokens > 0 && train > 0 {
		metrics["throughput/train_tok_per_s"] = tokens / train
	}
	if tokens := metrics["data/tokens_sampled"]; tokens > 0 && wall > train {
		metrics["throughput/rollout_tok_per_s"] = tokens / (wall - train)
	}
	rows, err := e.run.History()
	if err != nil {
		return err
	}
	for _, info := range Metrics() {
		value, ok := metrics[info.Name]
		if !info.Sum {
			continue
		}
		key := cumulative(info.Name)
		before, had := newest(rows, key)
		if ok || had {
			metrics[key] = before + value
		}
	}
	return nil
}

// cumulative is the name of a sum over the steps of a run.
func cumulative(name string) string {
	section, key, _ := strings.Cut(name, "/")
	return section + "/cum/" + key
}

// newest returns a metric of the newest row that has it.
func newest(rows []art.HistoryRow, key string) (value float64, ok bool) {
	for _, row := range slices.Backward(rows) {
		if value, ok = row.Metrics[key]; ok {
			return value, true
		}
	}
	return 0, false
}

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

// trainError is the error of a training call. Nothing has changed then: the model stays at its step, and its optimizer
// too.
func trainError(ctx context.Context, op string, err error, rate, maxGradNorm float64) error {
	hint := fmt.Sprintf("lower LearningRate, which is %v", rate)
	if maxGradNorm <= 0 {
		hint += ", or bound the gradient by MaxGradNorm, which is off"
	}
	return trainerError(ctx, op, err, map[error]string{
		trainer.ErrDiverged: hint + "; the model stays at the previous step",
	})
}

// ownError is the error of a primitive of [loop.Trainer].
func ownError(ctx context.Context, op string, err error) error {
	return trainerError(ctx, op, err, map[error]string{
		trainer.ErrLost:     "load weights that were saved, or a step, with Model.LoadWeights",
		trainer.ErrDiverged: "lower the learning rate or set GradClipNorm, and load the newest step with Model.LoadWeights",
	})
}

// trainerError adds the hint of its kind to an error of the trainer. It returns the cause of ctx if that has ended.
func trainerError(ctx context.Context, op string, err error, hints map[error]string) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	if _, told := errors.AsType[*art.Error](err); told {
		return err
	}
	out := &art.Error{Op: op, Err: deviceError(err)}
	for kind, hint := range hints {
		if errors.Is(err, kind) {
			out.Hint = hint
		}
	}
	return out
}

// unmoved is the change of a logprob, in nats, up to which a step counts as having changed nothing: 0.4 % of a
// probability. At that pace it takes 250 steps to make a token e times as likely. ART's learning rate of 5e-6 changes
// the built-in model by less.
const unmoved = 4e-3

// namedSkips is the largest number of trajectories that a warning names. All are in the result.
const namedSkips = 8

// warn warns of a step some or all of whose updates were skipped, because of the trajectories of skips; and of one with
// updates that changed no logprob of the trainer's probe, a few sequences of the batch, by more than unmoved.
func (b *Backend) warn(m *art.Model, step int, rate float64, report *trainer.Report, skips []art.Skip) {
	if report.Skipped > 0 {
		what := "updates of the step were skipped"
		if report.Updates == 0 {
			what = "the step changed nothing: all of its updates were skipped"
		}
		var named []string
		for _, s := range skips[:min(len(skips), namedSkips)] {
			named = append(named, fmt.Sprintf("%d of group %d: %s", s.Trajectory, s.Group, s.Detail))
		}
		if more := len(skips) - len(named); more > 0 {
			named = append(named, fmt.Sprintf("%d more", more))
		}
		b.opts.Logger.Warn(what+" because their loss or gradient is NaN or infinite: make rewards smaller, leave "+
			"NormalizeAdvantages unset, or go back with Model.Restore if earlier steps made the adapter too large",
			"model", m.Name(), "step", step, "data/updates", report.Updates, "data/updates_skipped", report.Skipped,
			"trajectories", named)
	}
	if report.Updates > 0 && report.Change.Max <= unmoved {
		b.opts.Logger.Warn("the step changed almost nothing: raise LearningRate, and MaxGradNorm if the gradient is clipped",
			"model", m.Name(), "step", step, "LearningRate", rate, "train/logprob_change_max", report.Change.Max)
	}
}
