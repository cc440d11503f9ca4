package arttest

import (
	"math"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/grpo/credit"
)

// sift counts the groups that can be trained on and lists what cannot.
func sift(groups []*art.TrajectoryGroup) (trainable int, skipped []art.Skip) {
	for i, g := range groups {
		usable, skips := siftGroup(i, g)
		skipped = append(skipped, skips...)
		if usable {
			trainable++
		}
	}
	return trainable, skipped
}

// siftGroup reports whether the group can be trained on, and what of it is skipped. index is its index.
func siftGroup(index int, g *art.TrajectoryGroup) (ok bool, skips []art.Skip) {
	if g == nil || len(g.Trajectories) == 0 {
		return false, []art.Skip{{Group: index, Trajectory: -1, Reason: credit.ReasonEmptyGroup}}
	}
	low, high, n := math.Inf(1), math.Inf(-1), 0
	for i, t := range g.Trajectories {
		if reason := siftTrajectory(t); reason != "" {
			skips = append(skips, art.Skip{Group: index, Trajectory: i, Reason: reason})
			continue
		}
		low, high, n = min(low, t.Reward), max(high, t.Reward), n+1
	}
	switch {
	case n == 0:
		return false, skips
	case n == 1:
		return false, append(skips, art.Skip{Group: index, Trajectory: -1, Reason: credit.ReasonSingleton})
	case low == high:
		return false, append(skips, art.Skip{Group: index, Trajectory: -1, Reason: credit.ReasonNoVariance})
	}
	return true, skips
}

// siftTrajectory returns why a trajectory cannot be trained on, "" when it can.
func siftTrajectory(t *art.Trajectory) credit.Reason {
	switch {
	case math.IsNaN(t.Reward) || math.IsInf(t.Reward, 0):
		return credit.ReasonBadReward
	case len(t.Samples()) == 0:
		return credit.ReasonNoSamples
	}
	return ""
}
