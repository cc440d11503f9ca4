package reward

import (
	"fmt"
	"math"
	"strings"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/grpo/credit"
)

// Report is what [Check] finds.
type Report struct {
	Groups, Trajectories int
	// Errors are trajectories for which the function failed, and NotFinite those whose reward is NaN or infinite.
	Errors, NotFinite int
	// Changing are trajectories that get another reward when they are asked for again.
	Changing int
	// Low and High are the lowest and the highest reward, Mean their mean and Spread the mean over the groups of the
	// standard deviation of their rewards.
	Low, High, Mean, Spread float64
	// Ties is the fraction of the pairs of a group that have equal rewards.
	Ties float64
	// ZeroVariance is the fraction of the groups without any difference: nothing is learned from them.
	ZeroVariance float64
	// Err is that of the first trajectory for which the function failed.
	Err error
}

// Check tries a reward function on groups, such as stored ones, before money is spent on training: it tells the
// spread, bounds, ties, the share of groups without variance, and whether the function gives the same twice. The groups
// are left as they are.
func Check(groups []*art.TrajectoryGroup, reward func(t *art.Trajectory) (float64, error)) *Report {
	r := &Report{Low: math.Inf(1), High: math.Inf(-1)}
	var numbers, ranked, flat, sum, spread, ties float64
	for _, g := range groups {
		values := r.rewards(g, reward)
		if len(values) == 0 {
			continue
		}
		r.Groups++
		for _, x := range values {
			r.Low, r.High = min(r.Low, x), max(r.High, x)
			sum += x
			numbers++
		}
		spread += credit.BatchStd(values)
		equal, pairs := 0, 0
		for i := range values {
			for j := range i {
				if pairs++; values[i] == values[j] {
					equal++
				}
			}
		}
		if pairs > 0 {
			ties += float64(equal) / float64(pairs)
			ranked++
		}
		if equal == pairs {
			flat++
		}
	}
	if r.Groups == 0 {
		r.Low, r.High = 0, 0
		return r
	}
	r.Mean, r.Spread, r.ZeroVariance = sum/numbers, spread/float64(r.Groups), flat/float64(r.Groups)
	r.Ties = ties / max(ranked, 1)
	return r
}

// rewards computes those of a group that are numbers, each twice.
func (r *Report) rewards(g *art.TrajectoryGroup, reward func(t *art.Trajectory) (float64, error)) []float64 {
	if g == nil {
		return nil
	}
	var values []float64
	for _, t := range g.Clone().Trajectories {
		if t == nil {
			continue
		}
		r.Trajectories++
		x, err := reward(t)
		switch {
		case err != nil:
			r.Errors++
			if r.Err == nil {
				r.Err = err
			}
			continue
		case math.IsNaN(x) || math.IsInf(x, 0):
			r.NotFinite++
			continue
		}
		if again, err := reward(t); err != nil || again != x {
			r.Changing++
		}
		values = append(values, x)
	}
	return values
}

// String writes the report for people, with what is worrying about it.
func (r *Report) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "groups: %d, trajectories: %d, rewards from %.4g to %.4g, mean %.4g, spread in a group %.4g\n",
		r.Groups, r.Trajectories, r.Low, r.High, r.Mean, r.Spread)
	fmt.Fprintf(&b, "tied pairs %.0f %%, groups without differences %.0f %%\n", 100*r.Ties, 100*r.ZeroVariance)
	for _, w := range []struct {
		bad  bool
		text string
	}{
		{r.Errors > 0, fmt.Sprintf("trajectories without a reward: %d, the first: %v", r.Errors, r.Err)},
		{r.NotFinite > 0, fmt.Sprintf("rewards that are NaN or infinite, which are not trained on: %d", r.NotFinite)},
		{r.Changing > 0, fmt.Sprintf("rewards that are another number the second time, so that noise is learned as well: %d",
			r.Changing)},
		{r.Groups > 0 && r.ZeroVariance > 0.5, "most groups have no differences: give partial credit, take scenarios of " +
			"middling difficulty, or raise the group size"},
	} {
		if w.bad {
			b.WriteString("! " + w.text + "\n")
		}
	}
	return b.String()
}
