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
	// VarianceTolerance is the spread of rewards, relative to the largest absolute reward, up to which they count as
	// equal. It is far above the rounding of float64 (1e-16) and far below any intended difference: three times 0.1
	// has mean 0.10000000000000002, and without a tolerance the residue would be scaled up to a full gradient.
	VarianceTolerance = 1e-12
	// StdEpsilon is added to the standard deviation that advantages are divided by.
	StdEpsilon = 1e-6
)

// AdvantageConfig says how rewards become advantages. The zero value is the default.
type AdvantageConfig struct {
	Baseline  Baseline  // default BaselineMean
	Scale     Scale     // default ScaleStd
	Objective Objective // default ObjectiveMean
	K         int       // attempts of ObjectivePassK, at least 1, and ObjectiveMaxK, at least 2; 0 for the others
	Tolerance float64   // spread of rewards that counts as none; 0 is VarianceTolerance
}

// Validate lists every problem.
func (c AdvantageConfig) Validate() error {
	var found problems
	checkName(&found, "baseline", c.Baseline, BaselineMean, BaselineLeaveOne)
	checkName(&found, "scale", c.Scale, ScaleStd, ScaleNone, ScaleBatch)
	found.notNegative("variance tolerance", &c.Tolerance)
	c.checkObjective(&found)
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
// An advantage whose reward lies within VarianceTolerance of the mean is exactly 0. The result does not depend on the
// order of the rewards, not even in its last bit. When the group cannot be trained on, the advantages are nil and the
// reason says why. An invalid config panics.
//
// Source: GRPO (Shao et al. 2024, https://arxiv.org/abs/2402.03300), with the constants of OpenPipe's ART.
func Advantages(rewards []float64, cfg AdvantageConfig) ([]float64, Reason) {
	if err := cfg.Validate(); err != nil {
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

// scaled returns x times 2^exponent.
func scaled(x []float64, exponent int) []float64 {
	out := make([]float64, len(x))
	for i := range x {
		out[i] = math.Ldexp(x[i], exponent)
	}
	return out
}

// tolerance returns the tolerance with its default.
func (c AdvantageConfig) tolerance() float64 { return cmp.Or(c.Tolerance, VarianceTolerance) }

// untrainable says why no advantages can be computed, if so.
func (c AdvantageConfig) untrainable(rewards []float64) Reason {
	for _, r := range rewards {
		if !finite(r) {
			return ReasonBadReward
		}
	}
	switch {
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
	zero := VarianceTolerance * largest(rewards)
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

// largest returns the largest absolute value.
func largest(rewards []float64) float64 {
	m := 0.0
	for _, r := range rewards {
		m = max(m, math.Abs(r))
	}
	return m
}

// finite reports whether x is neither NaN nor infinite.
func finite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }
