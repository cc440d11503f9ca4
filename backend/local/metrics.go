package local

import (
	"maps"
	"math"
	"strings"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/grpo"
	"github.com/goart-dev/art/internal/trainer"
)

// metrics counts what is trained on, and what is skipped.
func (b *batch) metrics() map[string]float64 {
	out := map[string]float64{
		"data/trajectories_trained": float64(b.trained),
		"data/tokens_trained":       float64(grpo.NumTrained(b.sequences)),
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
	metrics["train/grad_norm"] = r.Norm
	metrics["train/updates"] = float64(r.Updates)
	metrics["train/updates_skipped"] = float64(r.Skipped)
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
