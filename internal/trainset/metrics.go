package trainset

import (
	"maps"
	"math"
	"slices"
	"strings"
	"time"

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

// Times returns how the time between the step before and a training was spent on groups: with at least one of their
// rollouts running, and with a judge and no rollout running. The judge of a group begins when its last rollout ends.
// Trajectories without a start or a duration, and groups without art.JudgeSeconds, count as nothing.
func Times(groups []*art.TrajectoryGroup, since, until time.Time) (rollouts, judging time.Duration) {
	var played, all []span
	for _, g := range runs.Present(groups) {
		var last time.Time
		for _, t := range g.Trajectories {
			if t.Start.IsZero() || t.Duration <= 0 {
				continue
			}
			end := t.Start.Add(t.Duration)
			played = append(played, span{t.Start, end})
			if end.After(last) {
				last = end
			}
		}
		if seconds := g.Metrics[art.JudgeSeconds]; seconds > 0 && !last.IsZero() {
			all = append(all, span{last, last.Add(time.Duration(seconds * float64(time.Second)))})
		}
	}
	rollouts = covered(played, since, until)
	return rollouts, covered(append(all, played...), since, until) - rollouts
}

// span is a time between two others.
type span struct{ from, to time.Time }

// covered is the time between two others in which at least one of the spans is.
func covered(list []span, since, until time.Time) (sum time.Duration) {
	list = slices.Clone(list)
	slices.SortFunc(list, func(a, b span) int { return a.from.Compare(b.from) })
	for _, s := range list {
		if s.from.After(since) {
			since = s.from
		}
		if s.to.After(until) {
			s.to = until
		}
		if s.to.After(since) {
			sum += s.to.Sub(since)
			since = s.to
		}
	}
	return sum
}
