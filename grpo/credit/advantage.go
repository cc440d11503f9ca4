package credit

import (
	"cmp"
	"math"
	"slices"
)

// Baseline says what is subtracted from a reward.
type Baseline string

// Baselines of a group of n rewards.
const (
	// BaselineMean is the mean of the group (GRPO, Shao et al. 2024, https://arxiv.org/abs/2402.03300). The default,
	// right for nearly everything.
	BaselineMean Baseline = "mean"
	// BaselineLeaveOne is the mean of the other n-1 rewards (RLOO; Ahmadian et al. 2024,
	// https://arxiv.org/abs/2402.14740): advantages times n/(n-1). For an unbiased gradient with ScaleNone and small
	// groups; where [Normalize] divides advantages of groups of one size, it changes nothing.
	BaselineLeaveOne Baseline = "leave-one-out"
)

// Scale says what centred rewards are divided by.
type Scale string

// Scales of a group.
const (
	// ScaleStd is the population standard deviation of the group (GRPO, Shao et al. 2024,
	// https://arxiv.org/abs/2402.03300). The default: groups with rewards of different size count alike, and those that
	// hardly differ are scaled up, with the noise of a judge.
	ScaleStd Scale = "std"
	// ScaleNone is nothing. It is one half of Dr. GRPO (Liu et al. 2025, https://arxiv.org/abs/2503.20783), which leaves
	// out the division by a response's length too: [Normalize] keeps that, as the weight 1/T of a trajectory's tokens. By
	// default it also divides by the mean |advantage| of the batch, which Dr. GRPO does not. For rewards of one size,
	// where groups that hardly differ should count little.
	ScaleNone Scale = "none"
	// ScaleBatch is the population standard deviation of all rewards of the batch, as the objective transforms them (Lite
	// PPO, Liu et al. 2025, https://arxiv.org/abs/2508.08221): groups whose rewards hardly differ are not scaled up.
	// [Advantages] sees one group only and does not divide; the caller divides by [BatchStd] of what [Transformed]
	// returns for each group, + StdEpsilon. It makes a difference only where [Normalize] does not divide once more.
	ScaleBatch Scale = "batch"
)

const (
	// varianceTolerance is the spread of rewards, relative to the largest absolute reward, up to which they count as
	// equal. It is far above the rounding of float64 (1e-16) and far below any intended difference: three times 0.1
	// has mean 0.10000000000000002, and without a tolerance the residue would be scaled up to a full gradient.
	varianceTolerance = 1e-12
	// StdEpsilon is added to the standard deviation that advantages are divided by.
	StdEpsilon = 1e-6
)

// AdvantageConfig says how rewards become advantages. The zero value is the default.
type AdvantageConfig struct {
	Baseline  Baseline  // default BaselineMean
	Scale     Scale     // default ScaleStd
	Objective Objective // default ObjectiveMean
	K         int       // attempts of ObjectivePassK, at least 1, and ObjectiveMaxK, at least 2; 0 for the others
	Tolerance float64   // spread of rewards that counts as none; 0 is 1e-12
}

// validate lists every problem.
func (c AdvantageConfig) validate() error {
	var found problems
	checkName(&found, "baseline", c.Baseline, BaselineMean, BaselineLeaveOne)
	checkName(&found, "scale", c.Scale, ScaleStd, ScaleNone, ScaleBatch)
	found.notNegative("variance tolerance", &c.Tolerance)
	checkName(&found, "objective", c.Objective, ObjectiveMean, ObjectiveRank, ObjectivePassK, ObjectiveMaxK)
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
	return found.err()
}

// Advantages says how much better each reward r of one group is than the group. With n rewards
//
//	mean = Σ r / n
//	std  = sqrt(Σ (r-mean)² / n)      (population)
//	A    = r - mean                   (BaselineMean)
//	A    = (r - mean)·n/(n-1)         (BaselineLeaveOne: r minus the mean of the others)
//	A   /= std + StdEpsilon           (ScaleStd)
//
// That is ObjectiveMean; [Objective] has the others.
//
// Rewards above 1 are scaled by a power of two first, so that no square overflows; that changes no bit otherwise.
// An advantage whose reward lies within 1e-12 of the mean, relative to the largest, is exactly 0. The result does not
// depend on the order of the rewards, not even in its last bit. When the group cannot be trained on, the advantages are
// nil and the reason says why. An invalid config panics.
//
// Source: GRPO (Shao et al. 2024, https://arxiv.org/abs/2402.03300), with the constants of OpenPipe's ART.
func Advantages(rewards []float64, cfg AdvantageConfig) ([]float64, Reason) {
	if err := cfg.validate(); err != nil {
		panic(err)
	}
	if reason := cfg.untrainable(rewards); reason != ReasonNone {
		return nil, reason
	}
	switch cfg.Objective {
	case ObjectivePassK:
		return cfg.passK(rewards)
	case ObjectiveRank:
		rewards = ranks(rewards, cfg.tolerance()*largest(rewards))
	}
	exponent := scaleExponent(rewards)
	units := scaled(rewards, -exponent)
	centred, std := centre(units)
	if cfg.Objective == ObjectiveMaxK {
		centred = maxK(units, cfg.K)
	}
	if !slices.ContainsFunc(centred, func(a float64) bool { return a != 0 }) {
		return nil, ReasonNoVariance
	}
	factor := 1.0
	if cfg.Baseline == BaselineLeaveOne {
		n := float64(len(rewards))
		factor = n / (n - 1)
	}
	if cfg.Scale == "" || cfg.Scale == ScaleStd {
		factor /= std + math.Ldexp(StdEpsilon, -exponent)
		exponent = 0 // the quotient has no scale
	}
	for i := range centred {
		centred[i] = math.Ldexp(centred[i]*factor, exponent)
		if !finite(centred[i]) {
			return nil, ReasonBadReward
		}
	}
	return centred, ReasonNone
}

// scaleExponent returns the e, 0 or more, for which all rewards divided by 2^e lie within 1.
func scaleExponent(rewards []float64) int {
	_, e := math.Frexp(largest(rewards))
	return max(e, 0)
}

func scaled(x []float64, exponent int) []float64 {
	out := make([]float64, len(x))
	for i := range x {
		out[i] = math.Ldexp(x[i], exponent)
	}
	return out
}

func (c AdvantageConfig) tolerance() float64 { return cmp.Or(c.Tolerance, varianceTolerance) }

func (c AdvantageConfig) untrainable(rewards []float64) Reason {
	switch {
	case slices.ContainsFunc(rewards, func(r float64) bool { return !finite(r) }):
		return ReasonBadReward
	case len(rewards) == 0:
		return ReasonEmptyGroup
	case len(rewards) == 1:
		return ReasonSingleton
	case slices.Max(rewards)-slices.Min(rewards) <= c.tolerance()*largest(rewards):
		return ReasonNoVariance
	case len(rewards) < c.K:
		return ReasonSmallGroup
	}
	return ReasonNone
}

// centre returns the rewards minus their mean, in the order given, and their population standard deviation. Sums run
// over the sorted rewards, which makes them independent of the order, and are relative to the lowest one, which makes
// them exact for small differences of large rewards.
func centre(rewards []float64) (centred []float64, std float64) {
	sorted := slices.Sorted(slices.Values(rewards))
	low, n := sorted[0], float64(len(sorted))
	var sum, squares float64
	for _, r := range sorted {
		sum += r - low
	}
	mean := sum / n // relative to low
	for _, r := range sorted {
		squares += (r - low - mean) * (r - low - mean)
	}
	zero := varianceTolerance * largest(rewards)
	centred = make([]float64, len(rewards))
	for i, r := range rewards {
		if a := r - low - mean; math.Abs(a) > zero {
			centred[i] = a
		}
	}
	return centred, math.Sqrt(squares / n)
}

// BatchStd returns the population standard deviation of the rewards of a batch, those of all its groups. A reward that
// is not finite makes the result NaN: leave such trajectories out.
func BatchStd(rewards []float64) float64 {
	if len(rewards) == 0 {
		return 0
	}
	exponent := scaleExponent(rewards)
	_, std := centre(scaled(rewards, -exponent))
	return math.Ldexp(std, exponent)
}

func largest(rewards []float64) float64 {
	m := 0.0
	for _, r := range rewards {
		m = max(m, math.Abs(r))
	}
	return m
}

func finite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }

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
	if err := cfg.validate(); err != nil {
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
		if out[i] = lost; r == 1 {
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
	out, equal := make([]float64, n), varianceTolerance*largest(rewards)
	for i, r := range rewards {
		for j := 0; j < n && sorted[j] < r; j++ {
			if d := r - sorted[j]; d > equal {
				out[i] += d * chance[j]
			}
		}
	}
	return out
}
