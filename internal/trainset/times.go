package trainset

import (
	"slices"
	"time"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/internal/runs"
)

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
