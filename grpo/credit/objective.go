package credit

import (
	"cmp"
	"math"
	"slices"
)

// Objective says what training is to raise in a group of n attempts.
type Objective string

// Objectives.
const (
	// ObjectiveMean is the expected reward, as in GRPO. The default, and what a model that has one attempt is judged by.
	ObjectiveMean Objective = "mean"
	// ObjectiveRank is the expected rank: rewards are replaced by their ranks, from 0 for the worst to 1 for the best,
	// and ties share the mean of theirs. For rewards whose size means little, such as a judge's, or which have outliers;
	// near ties count in full, so raise the tolerance too. Source: fitness shaping by centred ranks (Salimans et al.
	// 2017, https://arxiv.org/abs/1703.03864).
	ObjectiveRank Objective = "rank"
	// ObjectivePassK is the chance that one of K attempts is right, for rewards 0 and 1: it rewards exploring. With n0
	// wrong attempts of n, and C the binomial coefficient,
	//
	//	p     = 1 - C(n0, K) / C(n, K)
	//	A     = 1 - p                                 (of a right attempt)
	//	A     = 1 - p - C(n0-1, K-1) / C(n-1, K-1)    (of a wrong one)
	//	A    /= sqrt(p·(1-p)) + StdEpsilon            (ScaleStd)
	//
	// A group with fewer than K wrong attempts has no variance, so begin with a small K, such as 4 of 16. Take the mean
	// in the end if one attempt counts then: it is the same as K = 1. Source: Pass@k Training (Chen et al. 2025,
	// https://arxiv.org/abs/2508.10751).
	ObjectivePassK Objective = "pass@k"
	// ObjectiveMaxK is the expected best reward of K attempts, whatever the rewards. The advantage of an attempt is what
	// it adds to the best of K-1 others, over all such choices:
	//
	//	A  = mean over S of max(0, r - max of S),  S any K-1 of the other attempts
	//	A /= std + StdEpsilon                      (ScaleStd; std of the rewards)
	//
	// None is negative, so failures are not pushed down: for graded rewards, where any attempt may succeed. With K = n
	// only the best attempt has one: its distance to the second (Tang et al. 2025, https://arxiv.org/abs/2503.19595).
	// Source: Pass@K Policy Optimization (Walder and Karkhanis 2025, https://arxiv.org/abs/2505.15201), whose s with the
	// baseline loo-1 is K/n·A: with ScaleNone, K/n·Σ A·∇logprob over a group is an unbiased gradient of the expected best
	// reward. The factor K/n is left out here, and belongs to the learning rate.
	ObjectiveMaxK Objective = "max@k"
)

// checkObjective reports what does not fit the objective.
func (c AdvantageConfig) checkObjective(found *problems) {
	checkName(found, "objective", c.Objective, ObjectiveMean, ObjectiveRank, ObjectivePassK, ObjectiveMaxK)
	switch c.Objective {
	case ObjectivePassK, ObjectiveMaxK:
		least := 1
		if c.Objective == ObjectiveMaxK {
			least = 2
		}
		found.check(c.K >= least, "K is %d, objective %q needs at least %d", c.K, c.Objective, least)
		found.check(c.Baseline != BaselineLeaveOne, "objective %q has a baseline of its own, leave out %q", c.Objective,
			c.Baseline)
	default:
		found.check(c.K == 0, "K is %d, only objectives %q and %q use it", c.K, ObjectivePassK, ObjectiveMaxK)
	}
}

// Transformed returns what the objective makes of the rewards of one group, before a baseline and a scale:
//
//	r                                        (ObjectiveMean)
//	the rank of r, 0 to 1                    (ObjectiveRank)
//	A, as it is before it is divided         (ObjectivePassK, ObjectiveMaxK: what an attempt adds; 0 without variance)
//
// It is nil where the objective has no meaning: fewer than K rewards, other rewards than 0 and 1 of ObjectivePassK, and
// a single one of ObjectiveRank. The rewards are finite, and an invalid config panics. [BatchStd] of what all groups
// have is the scale of ScaleBatch.
func Transformed(rewards []float64, cfg AdvantageConfig) []float64 {
	if err := cfg.Validate(); err != nil {
		panic(err)
	}
	switch {
	case cfg.Objective == "" || cfg.Objective == ObjectiveMean:
		return slices.Clone(rewards)
	case len(rewards) < max(cfg.K, 2):
		return nil
	case cfg.Objective == ObjectiveRank:
		return ranks(rewards, cfg.tolerance()*largest(rewards))
	}
	cfg.Scale = ScaleNone
	advantages, reason := Advantages(rewards, cfg)
	if reason == ReasonNoVariance {
		return make([]float64, len(rewards))
	}
	return advantages
}

// ranks returns the ranks of rewards, 0 to 1. Neighbours in order that differ by at most equal share their mean rank.
func ranks(rewards []float64, equal float64) []float64 {
	order := make([]int, len(rewards))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(rewards[a], rewards[b]) })
	out := make([]float64, len(rewards))
	for lo := 0; lo < len(order); {
		hi := lo + 1
		for hi < len(order) && rewards[order[hi]]-rewards[order[hi-1]] <= equal {
			hi++
		}
		for _, i := range order[lo:hi] {
			out[i] = float64(lo+hi-1) / 2 / float64(len(rewards)-1)
		}
		lo = hi
	}
	return out
}

// passK returns advantages of ObjectivePassK.
func (c AdvantageConfig) passK(rewards []float64) ([]float64, Reason) {
	wrong := 0
	for _, r := range rewards {
		switch r {
		case 0:
			wrong++
		case 1:
		default:
			return nil, ReasonNotBinary
		}
	}
	n := len(rewards)
	fail := binomialRatio(wrong, n, c.K) // 1 - p
	if fail == 0 {
		return nil, ReasonNoVariance
	}
	right, lost := fail, fail-binomialRatio(wrong-1, n-1, c.K-1)
	if c.Scale == "" || c.Scale == ScaleStd {
		std := math.Sqrt(fail*(1-fail)) + StdEpsilon
		right, lost = right/std, lost/std
	}
	out := make([]float64, n)
	for i, r := range rewards {
		out[i] = lost
		if r == 1 {
			out[i] = right
		}
	}
	return out, ReasonNone
}

// binomialRatio returns C(a, k) / C(b, k) for a <= b, without the binomials, which overflow.
func binomialRatio(a, b, k int) float64 {
	ratio := 1.0
	for i := range k {
		ratio *= float64(max(a-i, 0)) / float64(b-i)
	}
	return ratio
}

// maxK returns the advantages of ObjectiveMaxK before scaling. The best of K-1 others is the attempt at j, in order
// from the worst, in C(j, K-2) of C(n-1, K-1) choices.
func maxK(rewards []float64, k int) []float64 {
	sorted := slices.Sorted(slices.Values(rewards))
	n := len(sorted)
	chance := make([]float64, n) // that the best of K-1 others, of n-1, is at j
	for j := range chance {
		chance[j] = binomialRatio(j+1, n-1, k-1) - binomialRatio(j, n-1, k-1)
	}
	out, equal := make([]float64, n), VarianceTolerance*largest(rewards)
	for i, r := range rewards {
		for j := 0; j < n && sorted[j] < r; j++ {
			if d := r - sorted[j]; d > equal {
				out[i] += d * chance[j]
			}
		}
	}
	return out
}
