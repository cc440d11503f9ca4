package plot

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/internal/interval"
)

// Interval returns the mean of values and its 95 % confidence interval by Student's t distribution:
//
//	mean ± t(0.975, n-1) s / sqrt(n)
//
// where s is the standard deviation of the sample. NaN is left out. Fewer than two values have no interval: low and
// high are the mean then, which is NaN for none.
func Interval(values []float64) (mean, low, high float64) {
	kept := slices.DeleteFunc(slices.Clone(values), math.IsNaN)
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
//
// It is that of [Interval]. Where all rewards are 0 or 1 it is that of Wilson (1927), so that 0 of 8 is not 0 to 0:
// with the trials that would give the variance of the means, but at least the groups and at most the trajectories.
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
		means = all
	}
	if len(all) == 0 || slices.ContainsFunc(all, func(v float64) bool { return v != 0 && v != 1 }) {
		return Interval(means)
	}
	n := effectiveTrials(means, len(all))
	return interval.Share(stat.Mean(means, nil)*n, n)
}

// effectiveTrials returns how many independent trials have the variance of the mean of clusters, p(1-p)/n: at least the
// clusters, and at most all trials.
//
// Source: E. Korn and B. Graubard, Confidence intervals for proportions with small expected number of positive counts
// estimated from survey data, 1998.
func effectiveTrials(means []float64, all int) float64 {
	clusters := float64(len(means))
	p := stat.Mean(means, nil)
	if len(means) == all || p == 0 || p == 1 { // of one trial each, or nothing shows how alike those of a cluster are
		return clusters
	}
	return max(clusters, min(float64(all), p*(1-p)*clusters/stat.Variance(means, nil)))
}
