package trainset

import (
	"maps"
	"math"
	"strings"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/grpo/credit"
	"github.com/goart-dev/art/internal/runs"
)

// Metrics counts what was given, what is trained on, and what is skipped.
func (b *Set) Metrics(groups []*art.TrajectoryGroup) map[string]float64 {
	trajectories, tokens := 0, 0
	for _, g := range runs.Present(groups) {
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
		"data/trajectories_trained": float64(b.Trained),
		"data/tokens_trained":       float64(credit.NumTrained(b.Sequences)),
	}
	if cfg := b.cfg; cfg != nil && cfg.MaskTruncated {
		out["data/tokens_truncated"] = float64(b.truncated)
	}
	if cfg := b.cfg; cfg != nil && cfg.Overlong.Longest != 0 {
		out["data/overlong_penalty_mean"] = b.penalties / float64(max(trajectories, 1))
	}
	for _, s := range b.Skipped {
		out["data/skipped_"+string(s.Reason)]++
	}
	return out
}

// RowMetrics are the metrics of the row of an update: those of the groups, as Model.Log computes them, and those of
// training.
func RowMetrics(groups []*art.TrajectoryGroup, metrics map[string]float64) map[string]float64 {
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

// PolicyAge is the staleness of what is trained on: steps from the policy that sampled a token to the one being
// trained.
func PolicyAge(sequences []credit.Sequence) map[string]float64 {
	sum, oldest := 0, math.MinInt
	for i := range sequences {
		for j, trained := range sequences[i].Trained {
			if trained {
				sum, oldest = sum+sequences[i].Staleness[j], max(oldest, sequences[i].Staleness[j])
			}
		}
	}
	return map[string]float64{
		"offpolicy/token_weighted_policy_age_steps": float64(sum) / float64(credit.NumTrained(sequences)),
		"offpolicy/policy_age_max_steps":            float64(oldest),
	}
}
