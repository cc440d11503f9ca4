package plot

import (
	"math"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"

	"github.com/goart-dev/art"
)

// Interval returns the mean of values and its 95 % confidence interval by Student's t distribution:
//
//	mean ± t(0.975, n-1) s / sqrt(n)
//
// where s is the standard deviation of the sample. NaN is left out. Fewer than two values have no interval: low and
// high are the mean then, which is NaN for none.
func Interval(values []float64) (mean, low, high float64) {
	var kept []float64
	for _, v := range values {
		if !math.IsNaN(v) {
			kept = append(kept, v)
		}
	}
	if len(kept) < 2 {
		mean = stat.Mean(kept, nil)
		return mean, mean, mean
	}
	n := float64(len(kept))
	mean, s := stat.MeanStdDev(kept, nil)
	t := distuv.StudentsT{Mu: 0, Sigma: 1, Nu: n - 1}.Quantile(0.975)
	return mean, mean - t*s/math.Sqrt(n), mean + t*s/math.Sqrt(n)
}

// RewardInterval returns the mean reward of groups and its 95 % confidence interval. Trajectories of one group share
// their scenario, so the values of the interval are the means of the groups, unless there is one group only, of an
// evaluation that [art.Gather] made.
func RewardInterval(groups []*art.TrajectoryGroup) (mean, low, high float64) {
	return GroupInterval(groups, func(t *art.Trajectory) float64 { return t.Reward })
}

// GroupInterval is [RewardInterval] of another value. Trajectories for which it is NaN are left out, and so are those
// that are nil.
func GroupInterval(groups []*art.TrajectoryGroup, value func(*art.Trajectory) float64) (mean, low, high float64) {
	var means, all []float64
	for _, g := range groups {
		if g == nil {
			continue
		}
		var own []float64
		for _, t := range g.Trajectories {
			if t == nil {
				continue
			}
			if v := value(t); !math.IsNaN(v) {
				own = append(own, v)
			}
		}
		if len(own) > 0 {
			means, all = append(means, stat.Mean(own, nil)), append(all, own...)
		}
	}
	if len(means) == 1 {
		return Interval(all)
	}
	return Interval(means)
}
