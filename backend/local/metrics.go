package local

import (
	"maps"
	"math"
	"strings"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/grpo"
	"github.com/goart-dev/art/internal/trainer"
)

// metrics counts what a training call was given.
func (b *batch) metrics(groups []*art.TrajectoryGroup) map[string]float64 {
	out := map[string]float64{
		"data/groups":               float64(len(groups)),
		"data/groups_trainable":     float64(b.groups),
		"data/trajectories_trained": float64(b.trained),
		"data/tokens_trained":       float64(grpo.NumTrained(b.sequences)),
	}
	for _, s := range b.skipped {
		out["data/skipped_"+string(s.Reason)]++
	}
	return out
}

// rowMetrics are those of the row of an update: what the groups earned, as Model.Log computes it, and what training
// did.
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

// policyMetrics are what the trainer did. Loss metrics are means over updates.
func policyMetrics(r trainer.Report) map[string]float64 {
	sums := r.Sums
	sums.Loss /= float64(max(1, r.Updates))
	metrics := sums.Metrics()
	addDifference(metrics, "train/logprob_gap", r.Gap)
	addDifference(metrics, "offpolicy/logprob_diff", r.OffPolicy)
	addDifference(metrics, "train/logprob_change", r.Change)
	delete(metrics, "train/tokens") // counts a token once for each epoch; data/tokens_trained does not
	metrics["train/grad_norm"] = r.Norm
	metrics["train/updates"] = float64(r.Updates)
	metrics["train/updates_skipped"] = float64(r.Skipped)
	metrics["data/tokens_computed"] = float64(r.Computed)
	return metrics
}

// addDifference adds the mean and the maximum of a difference, unless it is one of no tokens.
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
				sum, oldest = sum+sequences[i].Behind[j], max(oldest, sequences[i].Behind[j])
			}
		}
	}
	return map[string]float64{
		"offpolicy/token_weighted_policy_age_steps": float64(sum) / float64(grpo.NumTrained(sequences)),
		"offpolicy/policy_age_max_steps":            float64(oldest),
	}
}

// sftMetrics are what the trainer did by supervised training, where there is no policy that sampled.
func sftMetrics(r trainer.Report) map[string]float64 {
	metrics := policyMetrics(r)
	metrics["loss/sft"] = metrics["loss/entropy"] // the mean of -logprob is both
	for _, key := range []string{
		"loss/policy", "loss/entropy", "loss/kl_old_new", "ratio/clipped_frac", "ratio/logprob_diff_mean", "ratio/logprob_diff_max",
	} {
		delete(metrics, key)
	}
	return metrics
}
