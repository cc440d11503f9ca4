package local

import (
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/grpo"
	"github.com/goart-dev/art/internal/trainer"
)

// metrics counts what was given, what is trained on, and what is skipped.
func (b *batch) metrics(groups []*art.TrajectoryGroup) map[string]float64 {
	trajectories, tokens := 0, 0
	for _, g := range present(groups) {
		trajectories += len(g.Trajectories)
		for _, t := range g.Trajectories {
			for _, s := range t.Samples() {
				tokens += len(s.IDs)
			}
		}
	}
	out := map[string]float64{
		"data/trajectories":         float64(trajectories),
		"data/tokens_sampled":       float64(tokens),
		"data/trajectories_trained": float64(b.trained),
		"data/tokens_trained":       float64(grpo.NumTrained(b.sequences)),
	}
	if cfg := b.cfg; cfg != nil && cfg.MaskTruncated {
		out["data/tokens_truncated"] = float64(b.truncated)
	}
	if cfg := b.cfg; cfg != nil && cfg.Overlong.Longest != 0 {
		out["data/overlong_penalty_mean"] = b.penalties / float64(max(trajectories, 1))
	}
	for _, s := range b.skipped {
		out["data/skipped_"+string(s.Reason)]++
	}
	return out
}

// rowMetrics are the metrics of the row of an update: those of the groups, as Model.Log computes them, and those of
// training.
func rowMetrics(groups []*art.TrajectoryGroup, metrics map[string]float64) map[string]float64 {
	row := map[string]float64{}
	for key, value := range art.Metrics(groups...) {
		if !strings.Contains(key, "/") {
			key = "train/" + key
		}
		row[key] = value
	}
	maps.Copy(row, metrics)
	return row
}

// reportMetrics are the metrics of the loss and of the trainer.
func reportMetrics(r trainer.Report) map[string]float64 {
	metrics := maps.Clone(r.Metrics)
	addDifference(metrics, "train/logprob_gap", r.Gap)
	addDifference(metrics, "offpolicy/logprob_diff", r.OffPolicy)
	addDifference(metrics, "train/logprob_change", r.Change)
	metrics["loss/grad_norm"] = r.Norm
	metrics["data/updates"] = float64(r.Updates)
	metrics["data/updates_skipped"] = float64(r.Skipped)
	metrics["data/tokens_computed"] = float64(r.Computed)
	return metrics
}

// addDifference adds the mean and the maximum of a difference, unless it has no tokens.
func addDifference(metrics map[string]float64, name string, d trainer.Difference) {
	if d.Tokens > 0 {
		metrics[name+"_mean"], metrics[name+"_max"] = d.Mean(), d.Max
	}
}

// policyAge is the staleness of what is trained on: steps from the policy that sampled a token to the one being
// trained.
func policyAge(sequences []grpo.Sequence) map[string]float64 {
	sum, oldest := 0, math.MinInt
	for i := range sequences {
		for j, trained := range sequences[i].Trained {
			if trained {
				sum, oldest = sum+sequences[i].Staleness[j], max(oldest, sequences[i].Staleness[j])
			}
		}
	}
	return map[string]float64{
		"offpolicy/token_weighted_policy_age_steps": float64(sum) / float64(grpo.NumTrained(sequences)),
		"offpolicy/policy_age_max_steps":            float64(oldest),
	}
}

// addTimes adds what the step took, and how fast it was. start is that of the training call.
func (e *entry) addTimes(metrics map[string]float64, start time.Time) {
	now := time.Now()
	train, wall := now.Sub(start).Seconds(), now.Sub(e.committed).Seconds()
	metrics["time/train_s"], metrics["time/step_wall_s"] = train, wall
	if tokens := metrics["data/tokens_computed"]; tokens > 0 && train > 0 {
		metrics["throughput/train_tok_per_s"] = tokens / train
	}
	if tokens := metrics["data/tokens_sampled"]; tokens > 0 && wall > train {
		metrics["throughput/rollout_tok_per_s"] = tokens / (wall - train)
	}
}

// addSums adds, for each metric that is summed, the sum over the steps up to this one: "data/cum/groups".
func (e *entry) addSums(metrics map[string]float64) error {
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
