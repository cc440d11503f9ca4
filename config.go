package art

import (
	"cmp"
	"maps"
	"math"
	"slices"
)

// Loss names a policy loss. A backend may have others beside these, such as those in the Options of backend/local.
type Loss string

// The losses that package grpo defines; grpo.PolicyLoss has formulas, sources and advice, and docs/losses.md a table.
const (
	LossCISPO Loss = "cispo" // clipped importance-sampling weight on the log-likelihood (MiniMax-M1); the default
	LossPPO   Loss = "ppo"   // clipped surrogate (Schulman et al. 2017)
	LossGRPO  Loss = "grpo"  // PPO's, as in GRPO (Shao et al. 2024)
	// LossDrGRPO is PPO's without biases by length and difficulty (Liu et al. 2025). Scale defaults to ScaleNone,
	// Weighting to WeightConstant, NormalizeAdvantages to false.
	LossDrGRPO Loss = "dr_grpo"
	// LossDAPO is PPO's with a higher upper bound (Yu et al. 2025). Weighting defaults to WeightToken.
	LossDAPO Loss = "dapo"
	// LossGSPO is PPO's with the ratio of a sequence (Zheng et al. 2025). Level defaults to LevelSequence.
	LossGSPO               Loss = "gspo"
	LossImportanceSampling Loss = "importance_sampling" // importance ratio times advantage, without bounds
	LossReinforce          Loss = "reinforce"           // log-likelihood times advantage (Williams 1992)
	LossDRO                Loss = "dro"                 // the same with a quadratic penalty (Richemond et al. 2024)
	LossCrossEntropy       Loss = "cross_entropy"       // likelihood of what has a positive advantage (RAFT)
)

// Level says over what an importance ratio is taken. grpo.Level has the formulas.
type Level string

// Levels.
const (
	LevelToken     Level = "token"          // each token has its own; the default but for LossGSPO
	LevelSequence  Level = "sequence"       // the geometric mean over a sequence
	LevelAverage   Level = "average"        // the mean of both
	LevelGeometric Level = "geometric_mean" // the geometric mean of both
)

// AdvantageScale says what a group's centred rewards are divided by.
type AdvantageScale string

// How rewards become advantages.
const (
	// ScaleStd is the population standard deviation of the group (GRPO). The default.
	ScaleStd AdvantageScale = "std"
	// ScaleNone does not divide, as in Dr. GRPO. The other changes of Dr. GRPO are not part of it: the tokens of a
	// trajectory still weigh 1/length, and advantages are still normalized over the batch, unless NormalizeAdvantages is
	// false.
	ScaleNone AdvantageScale = "none"
	// ScaleBatch is the population standard deviation of all rewards of the call (Lite PPO, Liu et al. 2025): groups whose
	// rewards hardly differ are not scaled up. It is of what advantages are computed from, with Overlong and after
	// Objective: credit.Transformed has what each objective makes of rewards.
	ScaleBatch AdvantageScale = "batch"
)

// Baseline says what is subtracted from a reward.
type Baseline string

// Baselines of a group.
const (
	BaselineMean     Baseline = "mean"          // mean of the group; the default
	BaselineLeaveOne Baseline = "leave-one-out" // mean of the others (RLOO)
)

// Objective says what training is to raise in a group. credit.Objective has formulas and sources.
type Objective string

// Objectives.
const (
	ObjectiveMean  Objective = "mean"   // the expected reward; the default
	ObjectiveRank  Objective = "rank"   // the expected rank within the group: for rewards whose size means little
	ObjectivePassK Objective = "pass@k" // the chance that one of K attempts is right; rewards 0 and 1, no Overlong
	ObjectiveMaxK  Objective = "max@k"  // the expected best reward of K attempts
)

// Weighting says how much a token counts in the loss. credit.Weighting has formulas and sources.
type Weighting string

// Weightings.
const (
	WeightTrajectory Weighting = "trajectory" // each trajectory counts once, however long it is; the default
	WeightToken      Weighting = "token"      // each token counts once (DAPO)
	WeightConstant   Weighting = "constant"   // each token counts 1 / Length, the same for all (Dr. GRPO)
)

// CorrectionMethod says what is done with importance weights against what was sampled from. grpo.Correction has
// sources.
type CorrectionMethod string

// Corrections.
const (
	CorrectTruncate CorrectionMethod = "truncate" // truncated importance sampling (TIS): weights are bounded
	CorrectMask     CorrectionMethod = "mask"     // masked importance sampling (IcePop): tokens out of bounds are left out
)

// Correction weighs tokens by how likely they are under the policy, relative to what they were sampled from: for
// samples of older steps, of settings that reshape the distribution, or of an engine with other numbers. grpo.Corrected
// has the formula.
type Correction struct {
	// Method is none by default: no correction.
	Method CorrectionMethod
	// Low and High bound the weights. Defaults 0 and 2 for CorrectTruncate, 0.5 and 5 for CorrectMask.
	Low, High float64
	// Sequence takes one weight for a sequence, the product of those of its tokens.
	Sequence bool
	// Behavior takes the distribution that was sampled from, after temperature, top-p and top-k ([Sample].Sampled), in
	// place of the policy's own ([Sample].Logprobs).
	Behavior bool
}

// KLEstimator estimates how far the policy is from a reference. credit.Estimator has the formulas.
type KLEstimator string

// Estimators.
const (
	KLK1 KLEstimator = "k1" // the log-ratio; the default in advantages
	KLK2 KLEstimator = "k2" // half of its square
	KLK3 KLEstimator = "k3" // GRPO's, never negative; the default in the loss
)

// KL keeps the policy close to a reference: the base model, unless Step or Lag say otherwise. It costs a forward pass.
// A loss of one's own that uses a reference (grpo.LossSpec) has that of Step and Lag too, without a penalty where Coef
// is 0.
type KL struct {
	// Coef is the strength. 0, the default, is off; 0.001 to 0.05 is usual.
	Coef float64
	// Estimator defaults to [KLK3], and to [KLK1] with Advantage.
	Estimator KLEstimator
	// Advantage takes the penalty into the advantages of tokens, as ART does, in place of a term of the loss.
	// credit.ShapeByKL has the formula.
	Advantage bool
	// Step is the step of the reference, whose checkpoint must exist. nil is the base model without an adapter.
	Step *int
	// Lag takes the step that is so many before the one being trained, or the first. ART's kl_penalty_step_lag. 0 is off.
	// The run must keep as many checkpoints.
	Lag int
}

// Overlong lowers the reward of long trajectories, softly: by 0 up to Longest-Buffer sampled tokens, by Penalty from
// Longest on, linearly between (DAPO). credit.OverlongPenalty has the formula.
type Overlong struct {
	// Longest is the number of sampled tokens of a trajectory from which the penalty is full; 0, the default, is off.
	Longest int
	// Buffer is the number of tokens over which the penalty rises, at most Longest. A fifth of Longest is usual.
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
	// setting them is an error.
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
	// DualClip, above 1+EpsilonHigh, bounds the loss of tokens with a negative advantage (Ye et al. 2019). 0 is off; 3 is
	// usual. For losses with PPO's form: PPO, GRPO, Dr. GRPO, DAPO and GSPO.
	DualClip float64
	// MaskRatio leaves out tokens whose ratio lies outside of the bounds. ART's mask_prob_ratio. For data that is several
	// steps old.
	MaskRatio bool
	// KimiTau lowers the advantage of tokens that have become likelier since they were sampled, by KimiTau times the
	// log-ratio. ART's kimi_k2_tau. 0 is off; 0.01 to 0.1 steadies long runs. Not for DRO and cross-entropy.
	KimiTau float64
	// DROBeta is the strength of the penalty of [LossDRO]. Default 0.05; 0 for other losses.
	DROBeta float64
	// PrecalculateLogprobs takes the importance ratio against logprobs that are computed before the first update, in place
	// of those of the sampler, which then only matter for Correction. ART's precalculate_logprobs. It costs a forward
	// pass. For samples of older steps: the bounds then limit how far this step moves, and Correction how far others have.
	// It is on with a Correction, where the loss is not a built-in one without an importance ratio: against the sampler's
	// logprobs the ratio and the correction are the same number, which would count twice.
	PrecalculateLogprobs bool
	// Correction is off by default. Its weights are of the policy before the first update (see PrecalculateLogprobs), and
	// of the policy that is being trained where a loss has no importance ratio.
	Correction Correction
	// KL is off by default.
	KL KL
	// EntropyBonus rewards the entropy of the policy. 0, the default, is off; 0.001 to 0.01 is usual. It costs time and
	// memory for a softmax over the vocabulary.
	EntropyBonus float64
	// MaskTruncated leaves out replies that ended at the limit of tokens: what they lack is not their fault. Their reward
	// still counts in the baseline (DAPO's overlong filtering).
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
	// fewer trajectories is skipped.
	K int
	// VarianceTolerance is the spread of a group's rewards, relative to the largest, that counts as none. Default 1e-12,
	// which is rounding. With the noisy scores of a judge, 0.01 skips groups in which all are about as good.
	VarianceTolerance float64
	// Weighting defaults to [WeightTrajectory], [WeightToken] for [LossDAPO], [WeightConstant] for [LossDrGRPO].
	Weighting Weighting
	// Length is that of [WeightConstant], in tokens: the longest reply allowed is usual. 0 is the longest trajectory of
	// the call, which makes steps of a different size as answers grow.
	Length int
	// AdvantageBalance, from -1 to 1, shrinks one sign of advantages: above 0 negative ones by the factor
	// 1-AdvantageBalance, below 0 positive ones by 1+AdvantageBalance. ART's advantage_balance. Default 0. Try 0.5 when
	// entropy explodes: negative advantages push probability to anything else.
	AdvantageBalance float64
	// NormalizeAdvantages divides advantages by their mean absolute value over the trained tokens of the batch, so that
	// the size of a step does not depend on the size of rewards. nil is true, and false for [LossDrGRPO]. It is
	// independent of Scale, which is per group.
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
	// by default. Those of which nothing can be trained on are an error.
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
		p.check(c.Objective != ObjectivePassK || c.Overlong.Longest == 0,
			"objective %q needs rewards 0 and 1, which Overlong changes: leave Overlong out, or take MaskTruncated or "+
				"objective %q", ObjectivePassK, ObjectiveMaxK)
	default:
		p.check(c.K == 0, "K is %d, only objectives %q and %q use it", c.K, ObjectivePassK, ObjectiveMaxK)
	}
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
