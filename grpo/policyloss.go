package grpo

// Shapes: N trained tokens of a micro-batch, padded. [] is a scalar.

import (
	"cmp"
	"errors"
	"fmt"
	"math"

	. "github.com/gomlx/gomlx/core/graph"
)

// maxLogRatio bounds |new-old| before it is exponentiated: exp(20) = 4.9e8 times more likely than when sampled. Beyond
// it the ratio has no gradient.
const maxLogRatio = 20.0

// PolicyLoss is the loss of tokens that a policy sampled. The zero value is the default. With A the advantage and w the
// weight of a token, and m the mean of d over the trained tokens of its sequence,
//
//	d     = new - old
//	ratio = exp(clip(d, -20, 20))                            (LevelToken; Level has the others)
//	a     = A - Tau·stop_gradient(d)
//	L     = -stop_gradient(clip(ratio, lo, hi))·a·new        (CISPO)
//	L     = -min(ratio·a, clip(ratio, lo, hi)·a)             (PPO, GRPO, DrGRPO, DAPO, GSPO)
//	L     = min(L, -DualClip·a)                              (the same where a < 0, if DualClip is set)
//	L     = -ratio·a                                         (ImportanceSampling)
//	L     = -a·new                                           (Reinforce)
//	L     = -(A·new - Beta/2·d²)                             (DRO)
//	L     = -new where A > 0, 0 elsewhere                    (CrossEntropy)
//	L     = 0 where ratio < lo or ratio > hi                 (MaskRatio)
//	loss  = Σ L·w / denominator
//
// where lo = 1-Epsilon and hi = 1+EpsilonHigh. PPO takes the gradient away from tokens whose ratio has left the range
// in the direction of A; CISPO keeps every token and bounds its weight.
//
// New and old are of the whole vocabulary at temperature 1, before temperature, top-p and top-k reshape what is sampled
// from. The ratio then compares policies: it is 1 on policy, and the bounds limit how far a policy moves from the one
// that sampled, whatever the settings. It does not turn an average over sampled tokens into one over the policy. With
// other settings than temperature 1, Σ is an average over the reshaped distribution, and tokens that top-p and top-k
// cut off are not in it. The logprob under the reshaped distribution as old would correct for temperature, at the price
// of ratios that are off 1 on policy, where the bounds clip; and it cannot bring back what was cut off. [Corrected]
// does that apart from the bounds.
//
// Which one to take: for one update on fresh samples, where ratios are 1, all but CrossEntropy have the same gradient,
// and what differs is weights and advantages. Beyond that,
//
//   - CISPO learns from every token, also from rare ones that PPO's bounds cut off. One epoch.
//   - PPO is for using data again: two or three epochs, several mini-batches. DAPO's upper bound keeps entropy up.
//   - GRPO is PPO under the name of its paper, to compare with, and so with a KL penalty of 0.04 ([Penalized]).
//   - GSPO is for long answers and mixtures of experts, where ratios of single tokens are noise. Its bounds are narrow,
//     because a mean over tokens hardly moves.
//   - DrGRPO where answers grow longer without getting better.
//   - ImportanceSampling is for one update on nearly fresh data: nothing bounds a token of a large ratio.
//   - Reinforce is for one update on fresh data, to compare with: it does not notice that data is old.
//   - DRO learns from old data of any policy; Beta is the price of moving away from it.
//   - CrossEntropy imitates success, for a first stage: failures teach nothing, and entropy falls.
//
// Its metrics, means over trained tokens unless they say otherwise, are
//
//	loss/policy            the loss, mean over optimizer steps
//	loss/entropy           -new: an estimate of the policy's entropy while it is close to the one that sampled, nats
//	loss/kl_old_new        exp(d) - 1 - d: the k3 estimate of KL(old ‖ new), never negative, nats
//	loss/clipped_fraction  fraction of tokens whose ratio lies outside of the bounds, where there are bounds
//	loss/log_ratio_mean    |d|, nats: what the importance ratio is exp of, from whatever cause
//	loss/log_ratio_max     maximum of |d|, nats
//
// Sources: PPO (Schulman et al. 2017, https://arxiv.org/abs/1707.06347), dual clip (Ye et al. 2019,
// https://arxiv.org/abs/1912.09729), CISPO (MiniMax-M1, 2025, https://arxiv.org/abs/2506.13585), GRPO (Shao et al.
// 2024, https://arxiv.org/abs/2402.03300), Dr. GRPO (Liu et al. 2025, https://arxiv.org/abs/2503.20783), DAPO (Yu et
// al. 2025, https://arxiv.org/abs/2503.14476), GSPO (Zheng et al. 2025, https://arxiv.org/abs/2507.18071), REINFORCE
// (Williams 1992, https://doi.org/10.1007/BF00992696), ImportanceSampling (the paper of PPO, equation 6), DRO
// (Richemond et al. 2024, https://arxiv.org/abs/2405.19107, without its value function, as in Tinker), the likelihood
// of the best samples (RAFT, Dong et al. 2023, https://arxiv.org/abs/2304.06767), Tau (Kimi K2, 2025,
// https://arxiv.org/abs/2507.20534), and MaskRatio, the levels and the token mean over packed sequences of OpenPipe's
// ART.
type PolicyLoss struct {
	// Kind defaults to CISPO.
	Kind PolicyKind
	// Epsilon and EpsilonHigh bound the importance ratio to [1-Epsilon, 1+EpsilonHigh]. nil is 1 and 4 for CISPO, 0.2 and
	// Epsilon for PPO, GRPO and DrGRPO, 0.2 and 0.28 for DAPO, 3e-4 and 4e-4 for GSPO. Others have no bounds, and setting
	// them is an error.
	Epsilon, EpsilonHigh *float64
	// Level is that of the ratio. The default is LevelToken, and LevelSequence for GSPO. Losses without a ratio have none.
	Level Level
	// DualClip, above 1+EpsilonHigh, bounds the loss of tokens with a negative advantage, which PPO's bounds do not where
	// the ratio is large. 0 is none; 3 is the paper's, for several epochs or old data. For losses with PPO's form only.
	DualClip float64
	// MaskRatio leaves out tokens whose ratio lies outside of the bounds, whatever the sign of the advantage. ART's
	// mask_prob_ratio. For data that is several steps old.
	MaskRatio bool
	// Tau lowers the advantage of tokens that have become likelier than when they were sampled. ART's kimi_k2_tau. 0 is
	// none; 0.01 to 0.1 steadies long runs. Not for DRO and CrossEntropy.
	Tau float64
	// Beta is the strength of DRO's penalty. 0 is 0.05, as in Tinker; take more where the policy leaves the data too far.
	// For DRO only.
	Beta float64
}

// Validate lists every problem.
func (l PolicyLoss) Validate() error {
	var errs []error
	fail := func(format string, args ...any) { errs = append(errs, fmt.Errorf("grpo: "+format, args...)) }
	preset, known := presets[l.kind()]
	if !known {
		fail("unknown loss %q, use one of %q", l.kind(), PolicyKinds())
	}
	notNegative := func(name string, value float64) {
		if !(finite(value) && value >= 0) {
			fail("%s is %v, it must be finite and not negative", name, value)
		}
	}
	for name, value := range map[string]*float64{"epsilon": l.Epsilon, "epsilon high": l.EpsilonHigh} {
		if value != nil {
			notNegative(name, *value)
		}
	}
	notNegative("dual clip", l.DualClip)
	notNegative("tau", l.Tau)
	notNegative("beta", l.Beta)
	if known {
		l.validateCombination(preset, fail)
	}
	return errors.Join(errs...)
}

// validateCombination reports options that the kind does not have.
func (l PolicyLoss) validateCombination(p preset, fail func(format string, args ...any)) {
	switch l.Level {
	case "", LevelToken, LevelSequence, LevelAverage, LevelGeometric:
	default:
		fail("unknown level %q, use %q, %q, %q or %q", l.Level, LevelToken, LevelSequence, LevelAverage, LevelGeometric)
	}
	for _, c := range []struct {
		set, fits bool
		what      string
	}{
		{l.Epsilon != nil || l.EpsilonHigh != nil, p.bounded(), "epsilon: it has no bounds"},
		{l.MaskRatio, p.bounded(), "mask ratio: it has no bounds"},
		{l.level() != LevelToken, p.bounded() || p.form == plainRatio, "level: it has no ratio"},
		{l.DualClip != 0, p.form == clippedRatio, "dual clip: it has not the form of PPO"},
		{l.Tau != 0, p.form < quadratic, "tau"},
		{l.Beta != 0, p.form == quadratic, "beta: it is DRO's"},
	} {
		if c.set && !c.fits {
			fail("loss %q has no %s", l.kind(), c.what)
		}
	}
	if _, hi := l.Bounds(); l.DualClip != 0 && l.DualClip <= hi {
		fail("dual clip is %v, it must be above 1 + epsilon high, which is %v", l.DualClip, hi)
	}
}

// Bounds returns the range that the importance ratio is clipped to: everything for losses without bounds.
func (l PolicyLoss) Bounds() (lo, hi float64) {
	p := presets[l.kind()]
	if !p.bounded() {
		return 0, math.Inf(1)
	}
	low, high := p.low, p.high
	if l.Epsilon != nil {
		low = *l.Epsilon
	}
	if math.IsNaN(high) {
		high = low
	}
	if l.EpsilonHigh != nil {
		high = *l.EpsilonHigh
	}
	return 1 - low, 1 + high
}

// kind returns the kind with its default.
func (l PolicyLoss) kind() PolicyKind { return cmp.Or(l.Kind, CISPO) }

// level returns the level with its default.
func (l PolicyLoss) level() Level { return cmp.Or(l.Level, presets[l.kind()].level) }

// beta returns the strength of DRO's penalty with its default.
func (l PolicyLoss) beta() float64 { return cmp.Or(l.Beta, 0.05) }

// Build implements [Loss].
func (l PolicyLoss) Build(in LossInputs) (loss *Node, metrics map[string]*Node) {
	logRatio := Sub(in.New, in.Old) // [N]
	ratio := l.ratio(in, logRatio)  // [N]
	perToken := l.perToken(in, logRatio, ratio)
	if l.MaskRatio {
		perToken = Where(l.outside(ratio), ZerosLike(perToken), perToken)
	}
	loss = in.Mean(perToken) // []
	return loss, l.metrics(loss, in, logRatio, ratio)
}

// boundedExp builds exp(x) [N] without overflow.
func boundedExp(x *Node) *Node { return Exp(ClipScalar(x, -maxLogRatio, maxLogRatio)) }

// ratio builds the importance ratio [N] of the level.
func (l PolicyLoss) ratio(in LossInputs, logRatio *Node) *Node {
	switch l.level() {
	case LevelSequence:
		return boundedExp(in.SequenceMean(logRatio))
	case LevelAverage:
		return MulScalar(Add(boundedExp(logRatio), boundedExp(in.SequenceMean(logRatio))), 0.5)
	case LevelGeometric:
		return boundedExp(MulScalar(Add(logRatio, in.SequenceMean(logRatio)), 0.5))
	default:
		return boundedExp(logRatio)
	}
}

// perToken builds L [N].
func (l PolicyLoss) perToken(in LossInputs, logRatio, ratio *Node) *Node {
	a := in.Advantage
	if l.Tau != 0 {
		a = Sub(a, MulScalar(StopGradient(logRatio), l.Tau))
	}
	lo, hi := l.Bounds()
	switch presets[l.kind()].form {
	case clippedRatio:
		return l.dualClip(a, Neg(Min(Mul(ratio, a), Mul(ClipScalar(ratio, lo, hi), a))))
	case plainRatio:
		return Neg(Mul(ratio, a))
	case likelihood:
		return Neg(Mul(a, in.New))
	case quadratic:
		return Sub(MulScalar(Mul(logRatio, logRatio), l.beta()/2), Mul(a, in.New))
	case positive:
		return Where(GreaterThan(a, ZerosLike(a)), Neg(in.New), ZerosLike(in.New))
	default:
		return Neg(Mul(Mul(StopGradient(ClipScalar(ratio, lo, hi)), a), in.New))
	}
}

// dualClip bounds perToken [N] where the advantage a [N] is negative.
func (l PolicyLoss) dualClip(a, perToken *Node) *Node {
	if l.DualClip == 0 {
		return perToken
	}
	return Where(LessThan(a, ZerosLike(a)), Min(perToken, MulScalar(a, -l.DualClip)), perToken)
}

// outside builds [N], whether the ratio lies outside of the bounds.
func (l PolicyLoss) outside(ratio *Node) *Node {
	lo, hi := l.Bounds()
	g, dtype := ratio.Graph(), ratio.DType()
	return LogicalOr(LessThan(ratio, Scalar(g, dtype, lo)), GreaterThan(ratio, Scalar(g, dtype, hi)))
}
