package art

import (
	"cmp"
	"maps"
	"math"
	"slices"
)

// Loss names a policy loss. A backend may have others beside these, such as those in the Options of backend/local.
//
// In the formulas of the built-in ones, new and old are the logprobs of a token under the policy that is trained and
// the one that sampled it (but see PrecalculateLogprobs), A is the advantage, d = new - old, ratio = exp(d), and the
// bounds are lo = 1-Epsilon and hi = 1+EpsilonHigh. Training minimises the mean of weight·L over tokens, where weight
// is that of [Weighting]. For one update on fresh samples, where ratio is 1, all but LossCrossEntropy have the same
// gradient: what differs there is weights and advantages. grpo.PolicyLoss has more.
type Loss string

// The losses that package grpo defines.
const (
	// LossCISPO, the default, is L = -stop_gradient(clip(ratio, lo, hi))·A·new, with Epsilon 1 and EpsilonHigh 4
	// (MiniMax-M1 2025, https://arxiv.org/abs/2506.13585; bounds of ART). Every token keeps its gradient, rare ones too.
	// For one epoch; with more, the bounds of LossPPO are safer.
	LossCISPO Loss = "cispo"
	// LossPPO is L = -min(ratio·A, clip(ratio, lo, hi)·A), with 0.2 for both bounds (Schulman et al. 2017,
	// https://arxiv.org/abs/1707.06347). To use samples again: two or three epochs, several mini-batches.
	LossPPO Loss = "ppo"
	// LossGRPO is LossPPO, as in GRPO (Shao et al. 2024, https://arxiv.org/abs/2402.03300). To compare with that paper,
	// whose penalty is KL{Coef: 0.04}; here KL is off unless set.
	LossGRPO Loss = "grpo"
	// LossDrGRPO is LossPPO without biases by length and difficulty: Scale defaults to ScaleNone, Weighting to
	// WeightConstant, NormalizeAdvantages to false (Liu et al. 2025, https://arxiv.org/abs/2503.20783). Where answers
	// grow and do not improve. Set Length, and expect to tune the learning rate: steps depend on the size of rewards.
	LossDrGRPO Loss = "dr_grpo"
	// LossDAPO is LossPPO with 0.2 and a higher upper bound, 0.28. Weighting defaults to WeightToken (Yu et al. 2025,
	// https://arxiv.org/abs/2503.14476). Where entropy falls too fast: unlikely tokens may rise further. What else the
	// paper has is set apart: Overlong, MaskTruncated, and the [EqualRefill] of a pipeline.
	LossDAPO Loss = "dapo"
	// LossGSPO is LossPPO with the ratio of a sequence, 3e-4 and 4e-4. Level defaults to LevelSequence (Zheng et al.
	// 2025, https://arxiv.org/abs/2507.18071). For long answers and mixtures of experts, where ratios of single tokens
	// are noise.
	LossGSPO Loss = "gspo"
	// LossImportanceSampling is L = -ratio·A: what PPO bounds (equation 6 of its paper), as in Tinker. For one update on
	// samples that are nearly fresh: nothing keeps tokens of a large ratio from taking over the step.
	LossImportanceSampling Loss = "importance_sampling"
	// LossReinforce is L = -A·new (Williams 1992, https://doi.org/10.1007/BF00992696). For one update on fresh samples,
	// as something simple to compare with: it does not notice that samples are old.
	LossReinforce Loss = "reinforce"
	// LossDRO is L = -(A·new - DROBeta/2·d²), DROBeta 0.05 (Richemond et al. 2024, https://arxiv.org/abs/2405.19107,
	// without its value function, as in Tinker). For samples of old steps or of other policies; a greater DROBeta stays
	// closer to them. On fresh samples it is LossReinforce.
	LossDRO Loss = "dro"
	// LossCrossEntropy is L = -new where A > 0, 0 elsewhere: the likelihood of what is above its group's baseline (RAFT,
	// Dong et al. 2023, https://arxiv.org/abs/2304.06767, takes the best of a group). For a first stage that only
	// imitates success: failures teach nothing, and entropy falls.
	LossCrossEntropy Loss = "cross_entropy"
)

// Level says over what an importance ratio is taken, with d the log-ratio of a token and m its mean over the trained
// tokens of the sequence.
type Level string

// Levels.
const (
	// LevelToken is exp(d), as in PPO. The default but for [LossGSPO], and what to take unless ratios are noise.
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

// AdvantageScale says what a group's centred rewards are divided by. credit.Advantages has the formulas.
type AdvantageScale string

// How rewards become advantages.
const (
	// ScaleStd is the population standard deviation of the group, + 1e-6 (GRPO, Shao et al. 2024,
	// https://arxiv.org/abs/2402.03300, constants of ART). The default: tasks with rewards of different size count alike.
	// Groups that are almost all right or wrong are scaled up, and with them the noise of a judge.
	ScaleStd AdvantageScale = "std"
	// ScaleNone does not divide (Dr. GRPO, Liu et al. 2025, https://arxiv.org/abs/2503.20783). For rewards of one size,
	// where groups that hardly differ should count little. The other changes of Dr. GRPO are not part of it: the tokens
	// of a trajectory still weigh 1/length, and advantages are still normalized over the batch, unless
	// NormalizeAdvantages is false.
	ScaleNone AdvantageScale = "none"
	// ScaleBatch is the population standard deviation of all rewards of the call, + 1e-6 (Lite PPO, Liu et al. 2025,
	// https://arxiv.org/abs/2508.08221): groups whose rewards hardly differ are not scaled up. It is of what advantages
	// are computed from, with Overlong and after Objective: credit.Transformed has what each objective makes of rewards.
	// Take it with NormalizeAdvantages false; otherwise that divides once more, and the result is that of ScaleNone.
	ScaleBatch AdvantageScale = "batch"
)

// Baseline says what is subtracted from a reward.
type Baseline string

// Baselines of a group of n rewards.
const (
	// BaselineMean is the mean of the group (GRPO, Shao et al. 2024, https://arxiv.org/abs/2402.03300). The default,
	// right for nearly everything.
	BaselineMean Baseline = "mean"
	// BaselineLeaveOne is the mean of the other rewards (RLOO, Ahmadian et al. 2024, https://arxiv.org/abs/2402.14740):
	// the advantage of BaselineMean times n/(n-1). For an unbiased gradient with ScaleNone and small groups. With
	// NormalizeAdvantages and groups of one size it changes nothing.
	BaselineLeaveOne Baseline = "leave-one-out"
)

// Objective says what training is to raise in a group. credit.Objective has the formulas.
type Objective string

// Objectives.
const (
	// ObjectiveMean is the expected reward, as in GRPO. The default, and what a model that has one attempt is judged by.
	ObjectiveMean Objective = "mean"
	// ObjectiveRank is the expected rank within the group, 0 to 1 (centred ranks, Salimans et al. 2017,
	// https://arxiv.org/abs/1703.03864). For rewards whose size means little, such as a judge's, or with outliers; near
	// ties count in full, so raise VarianceTolerance too.
	ObjectiveRank Objective = "rank"
	// ObjectivePassK is the chance that one of K attempts is right (Pass@k Training, Chen et al. 2025,
	// https://arxiv.org/abs/2508.10751); rewards 0 and 1, no Overlong. To keep exploring where attempts rarely succeed;
	// finish with ObjectiveMean if one attempt counts in the end.
	ObjectivePassK Objective = "pass@k"
	// ObjectiveMaxK is the expected best reward of K attempts (Pass@K Policy Optimization, Walder and Karkhanis 2025,
	// https://arxiv.org/abs/2505.15201). As ObjectivePassK for graded rewards. No advantage is negative, so failures are
	// not pushed down, and AdvantageBalance is an error; so is DualClip without KimiTau or KL.Advantage.
	ObjectiveMaxK Objective = "max@k"
)

// Weighting says how much a token counts in the loss, which is the sum of weight·L / N over the N trained tokens of K
// trajectories, T of them in the token's own.
type Weighting string

// Weightings.
const (
	// WeightTrajectory is N / (K·T): each trajectory counts once, however long it is (GRPO, Shao et al. 2024,
	// https://arxiv.org/abs/2402.03300, and ART). The default, for episodes that should count alike. A long bad answer is
	// penalised less per token, so watch that answers do not grow.
	WeightTrajectory Weighting = "trajectory"
	// WeightToken is 1: each token counts once (DAPO, Yu et al. 2025, https://arxiv.org/abs/2503.14476). For long
	// reasoning, every step of which should be learned; a few very long trajectories can dominate an update.
	WeightToken Weighting = "token"
	// WeightConstant is N / (K·Length), the same for all (Dr. GRPO, Liu et al. 2025, https://arxiv.org/abs/2503.20783).
	// Where answers grow and do not improve; set Length, so that updates of different calls compare.
	WeightConstant Weighting = "constant"
)

// CorrectionMethod says what is done with importance weights against what was sampled from.
type CorrectionMethod string

// Corrections, with r the importance weight of a token; see [Correction].
const (
	// CorrectTruncate multiplies the weight of a token by max(Low, min(r, High)), by default min(r, 2) (truncated
	// importance sampling, TIS: Yao et al. 2025, https://fengyao.notion.site/off-policy-rl). The one to begin with: every
	// token counts, and none too much.
	CorrectTruncate CorrectionMethod = "truncate"
	// CorrectMask multiplies it by r within Low and High, by default 0.5 and 5, and by 0 elsewhere (IcePop: Ling team
	// 2025, https://arxiv.org/abs/2510.18855). Where sampler and trainer differ a lot for a few tokens, as with mixtures
	// of experts.
	CorrectMask CorrectionMethod = "mask"
)

// Correction weighs tokens by r, how likely they are under the policy, relative to what they were sampled from: for
// samples of older steps, of settings that reshape the distribution, or of an engine with other numbers. With p the
// logprob before the first update, or stop_gradient(new) where a loss has no importance ratio, r = exp(p - behavior).
// Where loss/log_ratio_mean stays near 0, nothing needs it. grpo.Corrected has more.
type Correction struct {
	// Method is none by default: no correction.
	Method CorrectionMethod
	// Low and High bound the weights. Defaults 0 and 2 for CorrectTruncate, 0.5 and 5 for CorrectMask, as in their
	// sources. Closer to 1 is less noise and more bias.
	Low, High float64
	// Sequence takes one weight for a sequence, the product of those of its tokens (as verl's sequence level). Default
	// false. For short replies only: the variance grows with the length.
	Sequence bool
	// Behavior takes the distribution that was sampled from, after temperature, top-p and top-k ([Sample].Sampled), in
	// place of the policy's own ([Sample].Logprobs). Default false. For samples of a temperature other than 1; what top-p
	// and top-k cut off does not come back.
	Behavior bool
}

// KLEstimator estimates how far the policy is from a reference, from d = policy - reference, the logprobs of a token.
// Source: J. Schulman, Approximating KL Divergence, 2020, http://joschu.net/blog/kl-approx.html.
type KLEstimator string

// Estimators.
const (
	// KLK1 is d, the default in advantages, where it belongs: in the loss its gradient is 0 on average.
	KLK1 KLEstimator = "k1"
	// KLK2 is d²/2. In the loss, for the gradient of KL(policy ‖ reference), on samples of the policy.
	KLK2 KLEstimator = "k2"
	// KLK3 is exp(-d) + d - 1, GRPO's, never negative; the default in the loss. Its gradient there is that of
	// KL(reference ‖ policy), on samples of the policy: it pulls hard at what the reference has and the policy has lost.
	KLK3 KLEstimator = "k3"
)

// KL keeps the policy close to a reference: the base model, unless Step or Lag say otherwise. With k the estimate of a
// token, Coef·Σ weight·k / N is added to the loss (GRPO, Shao et al. 2024, https://arxiv.org/abs/2402.03300). It costs
// a forward pass, and slows learning. Take it where a reward can be gamed or other abilities must stay; DAPO and Dr.
// GRPO leave it out.
//
// A loss of one's own that uses a reference (grpo.LossSpec) has that of Step and Lag too, without a penalty where Coef
// is 0.
type KL struct {
	// Coef is the strength. 0, the default, is off; 0.001 to 0.05 is usual, and 0.04 is that of the paper.
	Coef float64
	// Estimator defaults to [KLK3], and to [KLK1] with Advantage.
	Estimator KLEstimator
	// Advantage adds Coef·(mean k - k) to the advantages of tokens, from the logprobs before the first update, in place
	// of a term of the loss, as ART does. Default false. It keeps the mean advantage, and the bounds of the loss hold for
	// it too. credit.ShapeByKL has more.
	Advantage bool
	// Step is the step of the reference, whose checkpoint must exist. nil, the default, is the base model without an
	// adapter. ART's kl_penalty_reference_step. For a run that begins with supervised training: the step after that.
	Step *int
	// Lag takes the step that is so many before the one being trained, or the first. ART's kl_penalty_step_lag. 0, the
	// default, is off. It lets the policy go far, slowly. The run must keep as many checkpoints.
	Lag int
}

// Overlong lowers the reward of long trajectories, softly: by 0 up to Longest-Buffer sampled tokens, by Penalty above
// Longest, linearly between (DAPO, Yu et al. 2025, https://arxiv.org/abs/2503.14476). Where answers run into their
// limit. It counts all sampled tokens of an agent's episode, so long but necessary ones pay too. credit.OverlongPenalty
// has the formula.
type Overlong struct {
	// Longest is the number of sampled tokens of a trajectory above which the penalty is full; 0, the default, is off.
	Longest int
	// Buffer is the number of tokens over which the penalty rises, at most Longest. 0, the default, is a sudden penalty
	// above Longest. A fifth of Longest, as in the paper, tells answers apart before they are cut.
	Buffer int
	// Penalty defaults to 1, the size of a right answer's reward.
	Penalty float64
}

// TrainConfig holds the options of a training step. Zero values and a nil *TrainConfig are the defaults.
type TrainConfig struct {
	// LearningRate of AdamW. Default: that of the backend, if it is a [RateChooser], such as backend/local, which chooses
	// by the size of the base model; otherwise 5e-6, as in ART, which does nothing to small models. A step that diverges
	// is an error, and the model stays at the step before.
	LearningRate float64
	// Loss defaults to [LossCISPO].
	Loss Loss
	// Epsilon and EpsilonHigh bound the importance ratio to [1-Epsilon, 1+EpsilonHigh]. nil is 1 and 4 for CISPO, 0.2 and
	// Epsilon for PPO, GRPO and Dr. GRPO, 0.2 and 0.28 for DAPO, 3e-4 and 4e-4 for GSPO. The other losses have no bounds:
	// setting them is an error. Begin with the defaults, which are those of the papers, and of ART for CISPO.
	//
	// The ratio is that of a token's probability under the policy being trained to the one in [Sample].Logprobs: both over
	// the whole vocabulary at temperature 1, whatever temperature, top-p and top-k it was sampled with. So it is 1 for
	// tokens that the policy itself sampled, with any settings, and differs from 1 only as the policy moves away: that is
	// what the bounds limit. It does not correct for the settings. Tokens are drawn from the distribution of
	// [Sample].Sampled, where likely ones are more frequent than under the policy when the temperature is below 1, and
	// those that top-p or top-k cut off never occur. Temperature 1 without top-p and top-k has no such bias.
	Epsilon, EpsilonHigh *float64
	// Level is that of the importance ratio. Default [LevelToken], and [LevelSequence] for [LossGSPO]. Losses without a
	// ratio have no other.
	Level Level
	// DualClip c, above 1+EpsilonHigh, bounds the loss of tokens with a negative advantage, to min(L, -c·A) (Ye et al.
	// 2019, https://arxiv.org/abs/1912.09729). 0, the default, is off; 3 is usual, with several epochs or old samples.
	// For losses with PPO's form: PPO, GRPO, Dr. GRPO, DAPO and GSPO.
	DualClip float64
	// MaskRatio leaves out tokens whose ratio lies outside of the bounds, L = 0, whatever the sign of the advantage.
	// ART's mask_prob_ratio. Default false. For samples that are several steps old; in several epochs it gives up what
	// PPO's bounds would take back.
	MaskRatio bool
	// KimiTau replaces A by A - KimiTau·stop_gradient(d): tokens that have become likelier since they were sampled gain
	// less (Kimi K2 2025, https://arxiv.org/abs/2507.20534; ART's kimi_k2_tau). 0, the default, is off; 0.01 to 0.1
	// steadies long runs. It does nothing in one update on fresh samples. Not for DRO and cross-entropy.
	KimiTau float64
	// DROBeta is the strength of the penalty of [LossDRO], DROBeta/2·d². Default 0.05, as in Tinker; 0 for other losses.
	// Greater where the policy leaves the samples too far.
	DROBeta float64
	// PrecalculateLogprobs takes the importance ratio against logprobs that are computed before the first update, in
	// place of those of the sampler, which then only matter for Correction. ART's precalculate_logprobs. It costs a
	// forward pass. For samples of older steps: the bounds then limit how far this step moves, and Correction how far
	// others have. It is on with a Correction, where the loss is not a built-in one without an importance ratio: against
	// the sampler's logprobs the ratio and the correction are the same number, which would count twice. Both together are
	// the decoupled objective of Hilton et al. 2021, https://arxiv.org/abs/2110.00641.
	PrecalculateLogprobs bool
	// Correction is off by default. Its weights are of the policy before the first update (see PrecalculateLogprobs), and
	// of the policy that is being trained where a loss has no importance ratio.
	Correction Correction
	// KL is off by default.
	KL KL
	// EntropyBonus rewards the entropy of the policy: EntropyBonus times its mean over trained tokens, of the whole
	// distribution, is subtracted from the loss (Williams and Peng 1991; Mnih et al. 2016,
	// https://arxiv.org/abs/1602.01783). 0, the default, is off; 0.001 to 0.01 is usual, where entropy falls before
	// rewards have risen. More makes noise of replies. It costs time and memory for a softmax over the vocabulary.
	EntropyBonus float64
	// MaskTruncated leaves out replies that ended at the limit of tokens: what they lack is not their fault. Their reward
	// still counts in the baseline (overlong filtering of DAPO, Yu et al. 2025, https://arxiv.org/abs/2503.14476).
	// Default false. Where the limit is tight; nothing then teaches replies to end, so add Overlong if they grow.
	MaskTruncated bool
	// Overlong is off by default.
	Overlong Overlong
	// Baseline defaults to [BaselineMean].
	Baseline Baseline
	// Scale defaults to [ScaleStd], and [ScaleNone] for [LossDrGRPO].
	Scale AdvantageScale
	// Objective defaults to [ObjectiveMean].
	Objective Objective
	// K is the number of attempts of [ObjectivePassK] and [ObjectiveMaxK], which need it; 0 for the others. A group with
	// fewer trajectories is skipped. Begin with a small one, such as 4 of 16: ObjectivePassK skips groups with fewer than
	// K wrong attempts.
	K int
	// VarianceTolerance is the spread of a group's rewards that counts as none, relative to the largest: a group whose
	// max - min <= VarianceTolerance·max |r| is skipped. Default 1e-12, as in ART, which is rounding. With the noisy
	// scores of a judge, 0.01 skips groups in which all are about as good.
	VarianceTolerance float64
	// Weighting defaults to [WeightTrajectory], [WeightToken] for [LossDAPO], [WeightConstant] for [LossDrGRPO].
	Weighting Weighting
	// Length is that of [WeightConstant], in tokens: the longest reply allowed is usual. 0 is the longest trajectory of
	// the call, which makes steps of a different size as answers grow.
	Length int
	// AdvantageBalance, from -1 to 1, shrinks one sign of advantages: above 0 negative ones by the factor
	// 1-AdvantageBalance, below 0 positive ones by 1+AdvantageBalance, before they are normalized. ART's
	// advantage_balance. Default 0. Try 0.5 when entropy explodes: negative advantages push probability to anything else.
	AdvantageBalance float64
	// NormalizeAdvantages divides advantages by their weighted mean absolute value over the trained tokens of the batch,
	// as ART does, so that the size of a step does not depend on the size of rewards. nil is true, and false for
	// [LossDrGRPO]. Scale is of each group, and comes first. false makes small steps where little is to be learned, at
	// the price of a learning rate that depends on the rewards.
	NormalizeAdvantages *bool
	// Epochs is the number of passes over the batch. Default 1.
	Epochs int
	// MiniBatches is the number of optimizer steps per epoch, at most one for each sequence. Default 1.
	MiniBatches int
	// MicroBatch bounds the number of sequences that are computed at once; gradients are accumulated over micro-batches
	// and the result does not depend on it except for rounding. 0 lets the backend choose.
	MicroBatch int
	// MaxGradNorm clips the global norm of the gradient. Default 0.1, as in ART; negative is off.
	MaxGradNorm float64
	// Beta1, Beta2 and Eps are AdamW's. Defaults 0.9, 0.99, 1e-8.
	Beta1, Beta2, Eps float64
	// WeightDecay is AdamW's, decoupled. nil is 0.1, as in ART.
	WeightDecay *float64
	// Progress is called after each optimizer step. May be nil.
	Progress func(TrainProgress) `json:"-"`
}

// Turns says which replies of a conversation are trained on.
type Turns string

// Turns.
const (
	TurnsAll  Turns = "all"  // what the assistant says anywhere; the default
	TurnsLast Turns = "last" // its last message alone: what comes before is context
)

// SFTConfig holds the options of supervised training. Zero values and a nil *SFTConfig are the defaults.
type SFTConfig struct {
	// LearningRate of AdamW. Default: that of the backend, if it is a [RateChooser], and otherwise 5e-5.
	LearningRate float64
	// Turns of each history that are trained on. Default [TurnsAll]. With [TurnsLast] a template may rewrite earlier
	// replies, as those do that omit earlier reasoning.
	Turns Turns
	// Validation are trajectories that are not trained on, whose loss after the step is the metric "loss/validation". None
	// by default. Those that cannot be trained on are left out, with a warning; when no other is left, it is an error.
	Validation []*Trajectory `json:"-"`
	// BatchSize is the greatest number of histories in an optimizer step; an epoch is split evenly. A trajectory has its
	// main history and the additional ones. Default 8.
	BatchSize int
	// Epochs over the data. Default 1.
	Epochs int
	// Warmup is the fraction of all optimizer steps, 0 to 1, over which the learning rate rises from 0. Default 0.
	Warmup float64
	// Decay is the fraction of the learning rate, 0 to 1, that it falls towards. nil is 0 for [ScheduleLinear] and
	// [ScheduleCosine]. [ScheduleConstant] has none: setting another one than 1 is an error.
	Decay *float64
	// Schedule is how the learning rate changes after the warm-up. Default [ScheduleConstant], and [ScheduleLinear] if
	// Decay is set.
	Schedule Schedule
	// Part is what this call is of a training of several calls: Warmup, Decay and Schedule are then of the whole. The zero
	// value is all of it.
	Part SchedulePart `json:",omitzero"`
	// MaxGradNorm clips the global norm of the gradient. Default 1; negative is off.
	MaxGradNorm float64
	// WeightDecay is AdamW's, decoupled. Default 0.
	WeightDecay float64
	// Seed shuffles the data. Default 0.
	Seed uint64
	// Progress is called after each optimizer step. May be nil.
	Progress func(TrainProgress) `json:"-"`
}

// SchedulePart is a part of a training, in fractions of its length: 0 <= From < To <= 1.
type SchedulePart struct{ From, To float64 }

const configHint = "zero values are the defaults: leave out what need not change"

// WithDefaults returns a copy of c in which every default that its fields document is filled in, MicroBatch excepted,
// where 0 has a meaning. A nil c is all defaults.
func (c *TrainConfig) WithDefaults() *TrainConfig {
	var d TrainConfig
	if c != nil {
		d = *c
	}
	d.LearningRate = cmp.Or(d.LearningRate, 5e-6)
	d.fillLoss()
	d.fillTerms()
	d.Baseline = cmp.Or(d.Baseline, BaselineMean)
	d.Objective = cmp.Or(d.Objective, ObjectiveMean)
	d.VarianceTolerance = cmp.Or(d.VarianceTolerance, 1e-12)
	d.Epochs = cmp.Or(d.Epochs, 1)
	d.MiniBatches = cmp.Or(d.MiniBatches, 1)
	d.MaxGradNorm = cmp.Or(d.MaxGradNorm, 0.1)
	d.Beta1, d.Beta2, d.Eps = cmp.Or(d.Beta1, 0.9), cmp.Or(d.Beta2, 0.99), cmp.Or(d.Eps, 1e-8)
	d.WeightDecay = valueOr(d.WeightDecay, 0.1)
	return &d
}

// valueOr returns a pointer to a copy of *p, or to v when p is nil.
func valueOr[T any](p *T, v T) *T {
	if p != nil {
		v = *p
	}
	return &v
}

// Validate returns an [ErrInvalid] that lists every problem of c. A nil c is valid. own are losses that the backend has
// beside the built-in ones. [Model.Train] calls it.
func (c *TrainConfig) Validate(own ...Loss) error {
	if c == nil {
		return nil
	}
	var p problems
	p.notNegative("learning rate", &c.LearningRate)
	c.checkLoss(&p, own)
	c.checkTerms(&p)
	checkName(&p, "baseline", c.Baseline, BaselineMean, BaselineLeaveOne)
	checkName(&p, "scale", c.Scale, ScaleStd, ScaleNone, ScaleBatch)
	c.checkObjective(&p)
	c.checkWeighting(&p)
	p.check(c.Epochs >= 0, "epochs is %d, want >= 0", c.Epochs)
	p.check(c.MiniBatches >= 0, "mini-batches is %d, want >= 0", c.MiniBatches)
	p.check(c.MicroBatch >= 0, "micro-batch is %d, want >= 0", c.MicroBatch)
	p.check(finite(c.MaxGradNorm), "max grad norm is %v, want a finite number", c.MaxGradNorm)
	p.check(c.Beta1 >= 0 && c.Beta1 < 1, "beta1 is %v, want 0 <= beta1 < 1", c.Beta1)
	p.check(c.Beta2 >= 0 && c.Beta2 < 1, "beta2 is %v, want 0 <= beta2 < 1", c.Beta2)
	p.notNegative("eps", &c.Eps)
	p.notNegative("weight decay", c.WeightDecay)
	return p.err("train", configHint)
}

// checkObjective checks what advantages are computed from.
func (c *TrainConfig) checkObjective(p *problems) {
	checkName(p, "objective", c.Objective, ObjectiveMean, ObjectiveRank, ObjectivePassK, ObjectiveMaxK)
	p.notNegative("variance tolerance", &c.VarianceTolerance)
	switch c.Objective {
	case ObjectivePassK, ObjectiveMaxK:
		least := 1
		if c.Objective == ObjectiveMaxK {
			least = 2
		}
		p.check(c.K >= least, "K is %d, objective %q needs at least %d", c.K, c.Objective, least)
		p.check(c.Baseline != BaselineLeaveOne, "objective %q has a baseline of its own, leave out %q", c.Objective,
			c.Baseline)
		if c.Objective == ObjectiveMaxK {
			c.checkPositive(p)
		}
		p.check(c.Objective != ObjectivePassK || c.Overlong.Longest == 0,
			"objective %q needs rewards 0 and 1, which Overlong changes: leave Overlong out, or take MaskTruncated or "+
				"objective %q", ObjectivePassK, ObjectiveMaxK)
	default:
		p.check(c.K == 0, "K is %d, only objectives %q and %q use it", c.K, ObjectivePassK, ObjectiveMaxK)
	}
}

// checkPositive checks that nothing is set that is about negative advantages, of which [ObjectiveMaxK] has none.
func (c *TrainConfig) checkPositive(p *problems) {
	p.check(c.AdvantageBalance == 0, "objective %q takes no advantage balance: no advantage is negative", c.Objective)
	p.check(c.DualClip == 0 || c.KimiTau != 0 || c.KL.Advantage,
		"objective %q takes no dual clip: no advantage is negative", c.Objective)
}

// checkWeighting checks what makes the weights of tokens.
func (c *TrainConfig) checkWeighting(p *problems) {
	checkName(p, "weighting", c.Weighting, WeightTrajectory, WeightToken, WeightConstant)
	p.check(c.Length >= 0, "length is %d, want >= 0", c.Length)
	weighting := cmp.Or(c.Weighting, builtinLosses[c.Loss].weighting)
	p.check(c.Length <= 0 || weighting == WeightConstant, "length is %d, only weighting %q uses it", c.Length,
		WeightConstant)
	p.check(c.AdvantageBalance >= -1 && c.AdvantageBalance <= 1, "advantage balance is %v, want -1 to 1",
		c.AdvantageBalance)
}

// notNegative checks that *x, if there is one, is a finite number of at least 0.
func (p *problems) notNegative(name string, x *float64) {
	if x != nil {
		p.check(finite(*x) && *x >= 0, "%s is %v, want a finite number >= 0", name, *x)
	}
}

// checkName checks that a name is empty or among the known ones.
func checkName[T ~string](p *problems, what string, got T, known ...T) {
	p.check(got == "" || slices.Contains(known, got), "unknown %s %q, want one of %q", what, got, known)
}

// WithDefaults returns a copy of c in which every default that its fields document is filled in. A nil c is all
// defaults.
func (c *SFTConfig) WithDefaults() *SFTConfig {
	var d SFTConfig
	if c != nil {
		d = *c
	}
	d.LearningRate = cmp.Or(d.LearningRate, 5e-5)
	d.BatchSize = cmp.Or(d.BatchSize, 8)
	d.Epochs = cmp.Or(d.Epochs, 1)
	d.Turns = cmp.Or(d.Turns, TurnsAll)
	d.Schedule, d.Decay = fillSchedule(d.Schedule, d.Decay)
	d.MaxGradNorm = cmp.Or(d.MaxGradNorm, 1)
	return &d
}

// Validate returns an [ErrInvalid] that lists every problem of c. A nil c is valid. [Model.TrainSFT] calls it.
func (c *SFTConfig) Validate() error {
	if c == nil {
		return nil
	}
	var p problems
	p.notNegative("learning rate", &c.LearningRate)
	p.check(c.BatchSize >= 0, "batch size is %d, want >= 0", c.BatchSize)
	p.check(c.Epochs >= 0, "epochs is %d, want >= 0", c.Epochs)
	p.check(c.Warmup >= 0 && c.Warmup <= 1, "warmup is %v, want 0 <= warmup <= 1", c.Warmup)
	checkSchedule(&p, c.Schedule, c.Decay)
	p.check(c.Part == SchedulePart{} || c.Part.From >= 0 && c.Part.From < c.Part.To && c.Part.To <= 1,
		"part is from %v to %v, want 0 <= from < to <= 1", c.Part.From, c.Part.To)
	checkName(&p, "turns", c.Turns, TurnsAll, TurnsLast)
	p.check(!slices.Contains(c.Validation, nil), "a trajectory of Validation is nil")
	p.check(finite(c.MaxGradNorm), "max grad norm is %v, want a finite number", c.MaxGradNorm)
	p.notNegative("weight decay", &c.WeightDecay)
	return p.err("train sft", configHint)
}

// Rates returns the learning rate of each optimizer step, from 0, of a call that makes so many: that of a
// [RateSchedule], in which step k of n of a Part is from From + (To - From)·k/n to From + (To - From)·(k+1)/n of the
// whole. Backends call it.
func (c *SFTConfig) Rates(steps int) func(step int) float64 {
	c = c.WithDefaults()
	s := RateSchedule{Rate: c.LearningRate, Steps: steps, Warmup: c.Warmup, Decay: *c.Decay, Shape: c.Schedule}
	if c.Part == (SchedulePart{}) {
		return s.At
	}
	s.Steps = 1
	at := func(step int) float64 { return c.Part.From + (c.Part.To-c.Part.From)*float64(step)/float64(steps) }
	return func(step int) float64 { return s.during(at(step), at(step+1)) }
}

// deref returns *p, or the zero value of a nil p.
func deref[T any](p *T) T { return *valueOr(p, *new(T)) }

// Schedule is the shape of a learning rate over optimizer steps, after a warm-up.
type Schedule string

// Schedules. Those that fall do so towards Decay, which the step after the last one would have.
const (
	ScheduleConstant Schedule = "constant" // stays as it is
	ScheduleLinear   Schedule = "linear"   // falls by the same amount in each step
	ScheduleCosine   Schedule = "cosine"   // falls along half a cosine: slowly at both ends (Loshchilov and Hutter 2017)
)

// RateSchedule is a learning rate that changes over the steps of a training. For a loop over [Model.Train], whose
// TrainConfig has the rate of one step:
//
//	schedule := art.RateSchedule{Rate: 1e-4, Steps: 50, Warmup: 0.1, Shape: art.ScheduleCosine}
//	model.Train(ctx, groups, &art.TrainConfig{LearningRate: schedule.At(step)})
type RateSchedule struct {
	// Rate is the highest one.
	Rate float64
	// Steps are all of the training. A step beyond them has the rate of the last one.
	Steps int
	// Warmup is the fraction of Steps, 0 to 1, over which the rate rises from 0.
	Warmup float64
	// Decay is the fraction of Rate, 0 to 1, that the rate falls towards. 1 is constant after the warm-up, and
	// [ScheduleConstant] has none.
	Decay float64
	// Shape of the decay; "" is [ScheduleLinear].
	Shape Schedule
}

// At returns the rate of a step, counted from 0. With w = Warmup·Steps,
//
//	Rate·(step + 1)/w                       step + 1 < w
//	Rate·(1 + (Decay - 1)·f)                otherwise, with x = max(step - w, 0) / (Steps - w)
//	f = 0                                   constant
//	f = x                                   linear
//	f = (1 - cos(π·x)) / 2                  cosine
//
// So no step has a rate of 0: the first one of the decay has Rate, and the last one of a linear decay to 0 has
// Rate/(Steps - w). The decay is that of get_linear_schedule_with_warmup and get_cosine_schedule_with_warmup of Hugging
// Face's Transformers, whose warm-up begins with a step at 0, where this one begins with 1/w.
func (s RateSchedule) At(step int) float64 {
	step = min(step, s.Steps-1)
	return s.during(float64(step), float64(step+1))
}

// during returns the rate from one number of steps to another, which may be fractions: of the end in the warm-up, and
// of the beginning in the decay.
func (s RateSchedule) during(from, to float64) float64 {
	warmup := s.Warmup * float64(s.Steps)
	if to < warmup {
		return s.Rate * (to / warmup)
	}
	left := float64(s.Steps) - warmup
	if left <= 0 || s.Shape == ScheduleConstant {
		return s.Rate
	}
	x := max(from-warmup, 0) / left
	if s.Shape == ScheduleCosine {
		x = (1 - math.Cos(math.Pi*x)) / 2
	}
	return s.Rate * (1 + (s.Decay-1)*x)
}

// RewardStdMultiplier returns what to multiply a learning rate by as groups come to agree: the standard deviation of
// rewards that a line through its history predicts for the newest step, over the one that it predicts for step 0. It is
// ART's scale_learning_rate_by_reward_std_dev. rows are those of [CheckpointKeeper].History, with the metric
// "train/reward_std_dev"; without it, or where the line begins at 0 or below, the multiplier is 1. It is never
// negative.
func RewardStdMultiplier(rows []HistoryRow) float64 {
	byStep := map[int]mean{}
	for _, row := range rows {
		if x, ok := row.Metrics["train/reward_std_dev"]; ok && finite(x) {
			m := byStep[row.Step]
			m.add(x)
			byStep[row.Step] = m
		}
	}
	steps := slices.Sorted(maps.Keys(byStep))
	if len(steps) < 2 {
		return 1
	}
	var x, y, xx, xy float64
	n := float64(len(steps))
	for _, step := range steps {
		s, v := float64(step), byStep[step]
		x, y, xx, xy = x+s/n, y+v.value()/n, xx+s*s/n, xy+s*v.value()/n
	}
	slope := (xy - x*y) / (xx - x*x)
	start := y - slope*x
	if start <= 0 {
		return 1
	}
	return max(0, start+slope*float64(steps[len(steps)-1])) / start
}

// fillSchedule returns a schedule and its decay with their defaults.
func fillSchedule(s Schedule, decay *float64) (Schedule, *float64) {
	if s == "" && decay != nil {
		s = ScheduleLinear
	}
	s = cmp.Or(s, ScheduleConstant)
	if s == ScheduleConstant {
		return s, valueOr(decay, 1)
	}
	return s, valueOr(decay, 0)
}

// checkSchedule checks a schedule and its decay.
func checkSchedule(p *problems, s Schedule, decay *float64) {
	checkName(p, "schedule", s, ScheduleConstant, ScheduleLinear, ScheduleCosine)
	p.check(decay == nil || *decay >= 0 && *decay <= 1, "decay is %v, want 0 <= decay <= 1", deref(decay))
	p.check(s != ScheduleConstant || decay == nil || *decay == 1,
		"decay is %v, and schedule %q has none: leave it out, or take schedule %q", deref(decay), s, ScheduleLinear)
}
