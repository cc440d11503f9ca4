package grpo

import "math"

// PolicyKind names a policy loss.
type PolicyKind string

// Policy losses; [PolicyLoss] has their formulas, defaults, sources and advice. GRPO, Dr. GRPO and DAPO differ from PPO
// in bounds and in what is outside of a token's loss: advantages and weights, which [credit.AdvantageConfig] and
// [credit.NormalizeConfig] set.
const (
	CISPO              PolicyKind = "cispo"               // clipped importance weight on the log-likelihood; the default
	PPO                PolicyKind = "ppo"                 // clipped surrogate
	GRPO               PolicyKind = "grpo"                // PPO's
	DrGRPO             PolicyKind = "dr_grpo"             // PPO's; with ScaleNone, WeightConstant and no batch scale
	DAPO               PolicyKind = "dapo"                // PPO's with a higher upper bound; with WeightToken
	GSPO               PolicyKind = "gspo"                // PPO's with the ratio of a sequence
	ImportanceSampling PolicyKind = "importance_sampling" // ratio times advantage
	Reinforce          PolicyKind = "reinforce"           // log-likelihood times advantage
	DRO                PolicyKind = "dro"                 // the same with a quadratic penalty
	CrossEntropy       PolicyKind = "cross_entropy"       // log-likelihood of what has a positive advantage
)

// Level says over what an importance ratio is taken.
type Level string

// Levels, with d the log-ratio of a token and m the mean of d over the trained tokens of its sequence.
const (
	// LevelToken is exp(d), PPO's: what to take unless ratios are noise. The default of all losses but GSPO.
	LevelToken Level = "token"
	// LevelSequence is exp(m), the geometric mean of a sequence's ratios (GSPO, https://arxiv.org/abs/2507.18071). GSPO's
	// default, for long sequences. It moves little, and needs bounds such as GSPO's.
	LevelSequence Level = "sequence"
	// LevelAverage is (exp(d) + exp(m)) / 2, as in ART; no paper is known. Between the two others, where bounds cut too
	// many tokens.
	LevelAverage Level = "average"
	// LevelGeometric is exp((d + m) / 2), the geometric mean of both, ART's geometric_average; no paper is known. As
	// LevelAverage, but calmer where the ratio of a token is large.
	LevelGeometric Level = "geometric_mean"
)

// surrogate is the form of a token's loss.
type surrogate int

const (
	clippedWeight surrogate = iota // CISPO
	clippedRatio                   // PPO and its relatives
	plainRatio
	likelihood
	quadratic
	positive
)

// preset is what a kind stands for.
type preset struct {
	form      surrogate
	low, high float64 // epsilons
	level     Level
}

// presets are the kinds with their defaults. The forms from plainRatio on have no bounds.
var presets = map[PolicyKind]preset{
	CISPO:              {clippedWeight, 1, 4, LevelToken},
	PPO:                {clippedRatio, 0.2, math.NaN(), LevelToken}, // the high one is the low one
	GRPO:               {clippedRatio, 0.2, math.NaN(), LevelToken},
	DrGRPO:             {clippedRatio, 0.2, math.NaN(), LevelToken},
	DAPO:               {clippedRatio, 0.2, 0.28, LevelToken},
	GSPO:               {clippedRatio, 3e-4, 4e-4, LevelSequence},
	ImportanceSampling: {form: plainRatio, level: LevelToken},
	Reinforce:          {form: likelihood, level: LevelToken},
	DRO:                {form: quadratic, level: LevelToken},
	CrossEntropy:       {form: positive, level: LevelToken},
}

// PolicyKinds lists the names of policy losses, the default first.
func PolicyKinds() []PolicyKind {
	return []PolicyKind{CISPO, PPO, GRPO, DrGRPO, DAPO, GSPO, ImportanceSampling, Reinforce, DRO, CrossEntropy}
}

// bounded reports whether the form clips the ratio.
func (p preset) bounded() bool { return p.form == clippedWeight || p.form == clippedRatio }
