package credit

import (
	"cmp"
	"math"
	"slices"
)

// Loss names a policy loss. A backend may have others beside these, such as those in the Options of backend/local.
//
// In the formulas of the built-in ones, new and old are the logprobs of a token under the policy that is trained and
// the one that sampled it (but see PrecalculateLogprobs), A is the advantage, d = new - old, ratio = exp(d), and the
// bounds are lo = 1-Epsilon and hi = 1+EpsilonHigh. Training minimises the mean of weight·L over tokens, where weight
// is that of [Weighting]. For one update on fresh samples, where ratio is 1, all but CrossEntropy have the same
// gradient: what differs there is weights and advantages. grpo.PolicyLoss has more.
type Loss string

// The losses that package grpo defines.
const (
	// CISPO, the default, is L = -stop_gradient(clip(ratio, lo, hi))·A·new, with Epsilon 1 and EpsilonHigh 4
	// (MiniMax-M1 2025, https://arxiv.org/abs/2506.13585; bounds of ART). Every token keeps its gradient, rare ones too.
	// For one epoch; with more, the bounds of PPO are safer.
	CISPO Loss = "cispo"
	// PPO is L = -min(ratio·A, clip(ratio, lo, hi)·A), with 0.2 for both bounds (Schulman et al. 2017,
	// https://arxiv.org/abs/1707.06347). To use samples again: two or three epochs, several mini-batches.
	PPO Loss = "ppo"
	// GRPO is PPO, as in GRPO (Shao et al. 2024, https://arxiv.org/abs/2402.03300). To compare with that paper,
	// whose penalty is KL{Coef: 0.04}; here KL is off unless set.
	GRPO Loss = "grpo"
	// DrGRPO is PPO without biases by length and difficulty: Scale defaults to ScaleNone, Weighting to
	// WeightConstant, NormalizeAdvantages to false (Liu et al. 2025, https://arxiv.org/abs/2503.20783). Where answers
	// grow and do not improve. Set Length, and expect to tune the learning rate: steps depend on the size of rewards.
	DrGRPO Loss = "dr_grpo"
	// DAPO is PPO with 0.2 and a higher upper bound, 0.28. Weighting defaults to WeightToken (Yu et al. 2025,
	// https://arxiv.org/abs/2503.14476). Where entropy falls too fast: unlikely tokens may rise further. What else the
	// paper has is set apart: Overlong, MaskTruncated, and the refills of an [art.Pipeline].
	DAPO Loss = "dapo"
	// GSPO is PPO with the ratio of a sequence, 3e-4 and 4e-4. Level defaults to LevelSequence (Zheng et al.
	// 2025, https://arxiv.org/abs/2507.18071). For long answers and mixtures of experts, where ratios of single tokens
	// are noise.
	GSPO Loss = "gspo"
	// ImportanceSampling is L = -ratio·A: what PPO bounds (equation 6 of its paper), as in Tinker. For one update on
	// samples that are nearly fresh: nothing keeps tokens of a large ratio from taking over the step.
	ImportanceSampling Loss = "importance_sampling"
	// Reinforce is L = -A·new (Williams 1992, https://doi.org/10.1007/BF00992696). For one update on fresh samples,
	// as something simple to compare with: it does not notice that samples are old.
	Reinforce Loss = "reinforce"
	// DRO is L = -(A·new - DROBeta/2·d²), DROBeta 0.05 (Richemond et al. 2024, https://arxiv.org/abs/2405.19107,
	// without its value function, as in Tinker). For samples of old steps or of other policies; a greater DROBeta stays
	// closer to them. On fresh samples it is Reinforce.
	DRO Loss = "dro"
	// CrossEntropy is L = -new where A > 0, 0 elsewhere: the likelihood of what is above its group's baseline (RAFT,
	// Dong et al. 2023, https://arxiv.org/abs/2304.06767, takes the best of a group). For a first stage that only
	// imitates success: failures teach nothing, and entropy falls.
	CrossEntropy Loss = "cross_entropy"
)

// Level says over what an importance ratio is taken, with d the log-ratio of a token and m its mean over the trained
// tokens of the sequence.
type Level string

// Levels.
const (
	// LevelToken is exp(d), as in PPO. The default but for [GSPO], and what to take unless ratios are noise.
	LevelToken Level = "token"
	// LevelSequence is exp(m) (GSPO, Zheng et al. 2025, https://arxiv.org/abs/2507.18071). For long answers. It moves
	// little: with another loss than GSPO, set bounds like those of GSPO.
	LevelSequence Level = "sequence"
	// LevelAverage is (exp(d) + exp(m)) / 2: ART's importance_sampling_level average; no paper is known. Between the two
	// others, where bounds cut too many tokens; a single token of a large ratio still moves it.
	LevelAverage Level = "average"
	// LevelGeometric is exp((d + m) / 2), the geometric mean of both: ART's geometric_average; no paper is known. As
	// LevelAverage, but calmer where the ratio of a token is large.
	LevelGeometric Level = "geometric_mean"
)

// Losses lists the built-in losses, the default first.
func Losses() []Loss {
	return []Loss{CISPO, PPO, GRPO, DrGRPO, DAPO, GSPO, ImportanceSampling, Reinforce, DRO, CrossEntropy}
}

// Policy configures a policy loss. The zero value is the default.
type Policy struct {
	// Loss defaults to CISPO.
	Loss Loss
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
	// KimiTau lowers the advantage of tokens that have become likelier than when they were sampled. ART's kimi_k2_tau. 0
	// is none; 0.01 to 0.1 steadies long runs. Not for DRO and CrossEntropy.
	KimiTau float64
	// DROBeta is the strength of DRO's penalty. Default 0.05, as in Tinker; 0 for other losses. Greater where the policy
	// leaves the data too far.
	DROBeta float64
}

// traits are what a loss has, and the defaults that depend on it.
type traits struct {
	low, high float64 // epsilons; a high one of 0 is the low one
	bounds    bool    // it clips the importance ratio
	surrogate bool    // it has the form of PPO
	ratio     bool    // it has an importance ratio
	kimi      bool    // it takes KimiTau
	level     Level   // default LevelToken
	scale     Scale   // default ScaleStd
	weighting Weighting
}

var clipped = traits{low: 0.2, bounds: true, surrogate: true, ratio: true, kimi: true}

// builtin are the traits of the losses that [Losses] lists.
var builtin = map[Loss]traits{
	CISPO:              {low: 1, high: 4, bounds: true, ratio: true, kimi: true},
	PPO:                clipped,
	GRPO:               clipped,
	DrGRPO:             clipped.with(func(t *traits) { t.scale, t.weighting = ScaleNone, WeightConstant }),
	DAPO:               clipped.with(func(t *traits) { t.high, t.weighting = 0.28, WeightToken }),
	GSPO:               clipped.with(func(t *traits) { t.low, t.high, t.level = 3e-4, 4e-4, LevelSequence }),
	ImportanceSampling: {ratio: true, kimi: true},
	Reinforce:          {kimi: true},
	DRO:                {},
	CrossEntropy:       {},
}

func (t traits) with(edit func(t *traits)) traits {
	edit(&t)
	return t
}

// WithDefaults returns a copy of p in which every default is filled in. A loss that is not built in has no options.
func (p Policy) WithDefaults() Policy {
	p.Loss = cmp.Or(p.Loss, CISPO)
	t := builtin[p.Loss]
	p.Level = cmp.Or(p.Level, t.level, LevelToken)
	if p.Loss == DRO {
		p.DROBeta = cmp.Or(p.DROBeta, 0.05)
	}
	if t.bounds {
		p.Epsilon = valueOr(p.Epsilon, t.low)
		p.EpsilonHigh = valueOr(p.EpsilonHigh, cmp.Or(t.high, *p.Epsilon))
	}
	return p
}

// Bounds returns the range that the importance ratio is clipped to: everything for losses without bounds.
func (p Policy) Bounds() (lo, hi float64) {
	if !p.Bounded() {
		return 0, math.Inf(1)
	}
	p = p.WithDefaults()
	return 1 - *p.Epsilon, 1 + *p.EpsilonHigh
}

// Bounded reports whether the loss clips the importance ratio.
func (p Policy) Bounded() bool { return builtin[cmp.Or(p.Loss, CISPO)].bounds }

// Surrogate reports whether the loss has the form of PPO.
func (p Policy) Surrogate() bool { return builtin[cmp.Or(p.Loss, CISPO)].surrogate }

// Validate lists every problem. own are losses beside the built-in ones, which have no options.
func (p Policy) Validate(own ...Loss) error {
	var found problems
	found.notNegative("epsilon", p.Epsilon)
	found.notNegative("epsilon high", p.EpsilonHigh)
	found.notNegative("dual clip", &p.DualClip)
	found.notNegative("kimi tau", &p.KimiTau)
	found.notNegative("DRO beta", &p.DROBeta)
	checkName(&found, "level", p.Level, LevelToken, LevelSequence, LevelAverage, LevelGeometric)
	loss := cmp.Or(p.Loss, CISPO)
	t, known := builtin[loss]
	if !known && !slices.Contains(own, loss) {
		found.addf("unknown loss %q, want one of %q", loss, append(Losses(), own...))
		return found.err()
	}
	for _, option := range []struct {
		set, fits bool
		what      string
	}{
		{p.Epsilon != nil || p.EpsilonHigh != nil, t.bounds, "epsilon: it has no bounds"},
		{p.MaskRatio, t.bounds, "mask ratio: it has no bounds"},
		{p.Level != "" && p.Level != LevelToken, t.ratio, "level: it has no importance ratio"},
		{p.DualClip != 0, t.surrogate, "dual clip: it has not the form of PPO"},
		{p.KimiTau != 0, t.kimi, "kimi tau"},
		{p.DROBeta != 0, loss == DRO, "DRO beta"},
	} {
		found.check(!option.set || option.fits, "loss %q takes no %s", loss, option.what)
	}
	if _, hi := p.Bounds(); t.surrogate {
		found.check(p.DualClip == 0 || p.DualClip > hi, "dual clip is %v, want more than 1 + epsilon high, %v", p.DualClip,
			hi)
	}
	return found.err()
}
