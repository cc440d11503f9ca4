package trainset

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art"
)

// TestTimes: what overlaps counts once, a judge counts where no rollout runs, and only time between the two instants
// counts.
func TestTimes(t *testing.T) {
	zero := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	at := func(s float64) time.Time { return zero.Add(time.Duration(s * float64(time.Second))) }
	played := func(from, to float64) *art.Trajectory {
		return &art.Trajectory{Start: at(from), Duration: at(to).Sub(at(from))}
	}
	judged := func(s float64, list ...*art.Trajectory) *art.TrajectoryGroup {
		return &art.TrajectoryGroup{Trajectories: list, Metrics: map[string]float64{art.JudgeSeconds: s}}
	}
	for name, c := range map[string]struct {
		groups            []*art.TrajectoryGroup
		rollouts, judging float64
	}{
		"nothing":         {nil, 0, 0},
		"without times":   {group(&art.Trajectory{}), 0, 0},
		"overlap":         {group(played(1, 3), played(2, 4), played(2.5, 3)), 3, 0},
		"a pause":         {group(played(1, 2), played(3, 5)), 3, 0},
		"before and late": {group(played(-5, 1), played(8, 20)), 3, 0},
		"all before":      {[]*art.TrajectoryGroup{judged(1, played(-5, -2))}, 0, 0},
		"judge after all": {[]*art.TrajectoryGroup{judged(2, played(1, 3), played(1, 4))}, 3, 2},
		"judge beside":    {[]*art.TrajectoryGroup{judged(3, played(1, 2)), judged(1, played(2, 4))}, 3, 1},
		"judge is cut":    {[]*art.TrajectoryGroup{nil, judged(50, played(1, 2))}, 1, 8},
		"unplayed":        {[]*art.TrajectoryGroup{judged(3)}, 0, 0},
	} {
		rollouts, judging := Times(c.groups, at(0), at(10))
		require.InDelta(t, c.rollouts, rollouts.Seconds(), 1e-9, name)
		require.InDelta(t, c.judging, judging.Seconds(), 1e-9, name)
	}
}
