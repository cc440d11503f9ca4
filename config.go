package art

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"github.com/goart-dev/art/grpo/credit"
)

// TrainConfig holds the options of a training step. Zero values and a nil *TrainConfig are the defaults.
type TrainConfig struct {
	// LearningRate of loop.AdamW. Default: that of the backend, if it is a driver.RateChooser, such as backend/local,
	// which chooses by the size of the base model; otherwise 5e-6, as in ART, which does nothing to small models. A step
	// that diverges is an error, and the model stays at the step before.
	LearningRate float64
	// Loss defaults to [credit.CISPO].
	Loss credit.Loss
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
	// Level is that of the importance ratio. Default [credit.LevelToken], and [credit.LevelSequence] for [credit.GSPO].
	// Losses without a ratio have no other.
	Level credit.Level
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
	// DROBeta is the strength of the penalty of [credit.DRO], DROBeta/2·d². Default 0.05, as in Tinker; 0 for other
	// losses. Greater where the policy leaves the samples too far.
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
	Correction credit.Correction
	// KL is off by default.
	KL credit.KL
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
	Overlong credit.Overlong
	// Baseline defaults to [credit.BaselineMean].
	Baseline credit.Baseline
	// Scale defaults to [credit.ScaleStd], and [credit.ScaleNone] for [credit.DrGRPO].
	Scale credit.Scale
	// Objective defaults to [credit.ObjectiveMean].
	Objective credit.Objective
	// K is the number of attempts of [credit.ObjectivePassK] and [credit.ObjectiveMaxK], which need it; 0 for the others.
	// A group with fewer trajectories is skipped. Begin with a small one, such as 4 of 16: credit.ObjectivePassK skips
	// groups with fewer than K wrong attempts.
	K int
	// VarianceTolerance is the spread of a group's rewards that counts as none, relative to the largest: a group whose
	// max - min <= VarianceTolerance·max |r| is skipped. Default 1e-12, as in ART, which is rounding. With the noisy
	// scores of a judge, 0.01 skips groups in which all are about as good.
	VarianceTolerance float64
	// Weighting defaults to [credit.WeightTrajectory], [credit.WeightToken] for [credit.DAPO], [credit.WeightConstant] for
	// [credit.DrGRPO].
	Weighting credit.Weighting
	// Length is that of [credit.WeightConstant], in tokens: the longest reply allowed is usual. 0 is the longest
	// trajectory of the call, which makes steps of a different size as answers grow.
	Length int
	// AdvantageBalance, from -1 to 1, shrinks one sign of advantages: above 0 negative ones by the factor
	// 1-AdvantageBalance, below 0 positive ones by 1+AdvantageBalance, before they are normalized. ART's
	// advantage_balance. Default 0. Try 0.5 when entropy explodes: negative advantages push probability to anything else.
	AdvantageBalance float64
	// NormalizeAdvantages divides advantages by their weighted mean absolute value over the trained tokens of the batch,
	// as ART does, so that the size of a step does not depend on the size of rewards. nil is true, and false for
	// [credit.DrGRPO]. Scale is of each group, and comes first. false makes small steps where little is to be learned, at
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
	// Beta1, Beta2 and Eps are loop.AdamW's. Defaults 0.9, 0.99, 1e-8.
	Beta1, Beta2, Eps float64
	// WeightDecay is loop.AdamW's, decoupled. nil is 0.1, as in ART.
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
	// LearningRate of loop.AdamW. Default: that of the backend, if it is a driver.RateChooser, and otherwise 5e-5.
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
	// WeightDecay is loop.AdamW's, decoupled. Default 0.
	WeightDecay float64
	// Seed shuffles the data. Default 0.
	Seed uint64
	// Progress is called after each optimizer step. May be nil.
	Progress func(TrainProgress) `json:"-"`
}

// SchedulePart is a part of a training, in fractions of its length: 0 <= From < To <= 1.
type SchedulePart struct{ From, To float64 }

const configHint = "zero values are the defaults: leave out what need not change"

// Credit returns the part of c that says how groups become a loss, for backends: package credit has its defaults and
// its checks.
func (c *TrainConfig) Credit() credit.Config {
	return credit.Config{
		Policy: credit.Policy{
			Loss: c.Loss, Epsilon: c.Epsilon, EpsilonHigh: c.EpsilonHigh, Level: c.Level, DualClip: c.DualClip,
			MaskRatio: c.MaskRatio, KimiTau: c.KimiTau, DROBeta: c.DROBeta,
		},
		Advantages: credit.AdvantageConfig{
			Baseline: c.Baseline, Scale: c.Scale, Objective: c.Objective, K: c.K, Tolerance: c.VarianceTolerance,
		},
		Normalize: credit.NormalizeConfig{
			Weighting: c.Weighting, Length: c.Length, Balance: c.AdvantageBalance, Advantages: c.NormalizeAdvantages,
		},
		Correction: c.Correction, KL: c.KL, Overlong: c.Overlong, Precalculate: c.PrecalculateLogprobs,
	}
}

func (c *TrainConfig) setCredit(from credit.Config) {
	p, a, n := from.Policy, from.Advantages, from.Normalize
	c.Loss, c.Epsilon, c.EpsilonHigh, c.Level = p.Loss, p.Epsilon, p.EpsilonHigh, p.Level
	c.DualClip, c.MaskRatio, c.KimiTau, c.DROBeta = p.DualClip, p.MaskRatio, p.KimiTau, p.DROBeta
	c.Baseline, c.Scale, c.Objective, c.K, c.VarianceTolerance = a.Baseline, a.Scale, a.Objective, a.K, a.Tolerance
	c.Weighting, c.Length, c.AdvantageBalance, c.NormalizeAdvantages = n.Weighting, n.Length, n.Balance, n.Advantages
	c.Correction, c.KL, c.Overlong, c.PrecalculateLogprobs = from.Correction, from.KL, from.Overlong, from.Precalculate
}

// WithDefaults returns a copy of c in which every default that its fields document is filled in, MicroBatch excepted,
// where 0 has a meaning. A nil c is all defaults.
func (c *TrainConfig) WithDefaults() *TrainConfig {
	d := deref(c)
	d.setCredit(d.Credit().WithDefaults())
	d.LearningRate = cmp.Or(d.LearningRate, 5e-6)
	d.Epochs = cmp.Or(d.Epochs, 1)
	d.MiniBatches = cmp.Or(d.MiniBatches, 1)
	d.MaxGradNorm = cmp.Or(d.MaxGradNorm, 0.1)
	d.Beta1, d.Beta2, d.Eps = cmp.Or(d.Beta1, 0.9), cmp.Or(d.Beta2, 0.99), cmp.Or(d.Eps, 1e-8)
	d.WeightDecay = valueOr(d.WeightDecay, 0.1)
	return &d
}

func valueOr[T any](p *T, v T) *T {
	if p != nil {
		v = *p
	}
	return &v
}

// Validate returns an [ErrInvalid] that lists every problem of c. A nil c is valid. own are losses that the backend has
// beside the built-in ones. [Model.Train] calls it.
func (c *TrainConfig) Validate(own ...credit.Loss) error {
	if c == nil {
		return nil
	}
	var p problems
	p.notNegative("learning rate", &c.LearningRate)
	if joined, ok := c.Credit().Validate(own...).(interface{ Unwrap() []error }); ok {
		for _, err := range joined.Unwrap() {
			p.addf("%v", err)
		}
	}
	p.notNegative("entropy bonus", &c.EntropyBonus)
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

// notNegative checks that *x, if there is one, is a finite number of at least 0.
func (p *problems) notNegative(name string, x *float64) {
	if x != nil {
		p.check(finite(*x) && *x >= 0, "%s is %v, want a finite number >= 0", name, *x)
	}
}

func checkName[T ~string](p *problems, what string, got T, known ...T) {
	p.check(got == "" || slices.Contains(known, got), "unknown %s %q, want one of %q", what, got, known)
}

// WithDefaults returns a copy of c in which every default that its fields document is filled in. A nil c is all
// defaults.
func (c *SFTConfig) WithDefaults() *SFTConfig {
	d := deref(c)
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
// ART's scale_learning_rate_by_reward_std_dev. rows are those of driver.CheckpointKeeper, with the metric
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

func checkSchedule(p *problems, s Schedule, decay *float64) {
	checkName(p, "schedule", s, ScheduleConstant, ScheduleLinear, ScheduleCosine)
	p.check(decay == nil || *decay >= 0 && *decay <= 1, "decay is %v, want 0 <= decay <= 1", deref(decay))
	p.check(s != ScheduleConstant || decay == nil || *decay == 1,
		"decay is %v, and schedule %q has none: leave it out, or take schedule %q", deref(decay), s, ScheduleLinear)
}
