package runs

import (
	"slices"

	"github.com/goart-dev/art"
)

// Present leaves out groups and trajectories that are nil. It changes none of them, and copies only what it has to.
func Present(groups []*art.TrajectoryGroup) []*art.TrajectoryGroup {
	var out []*art.TrajectoryGroup
	for _, g := range groups {
		if g == nil {
			continue
		}
		if slices.Contains(g.Trajectories, nil) {
			copied := *g
			copied.Trajectories = slices.DeleteFunc(slices.Clone(g.Trajectories),
				func(t *art.Trajectory) bool { return t == nil })
			g = &copied
		}
		out = append(out, g)
	}
	return out
}
