package art

// Loss names a policy loss.
type Loss string

// The losses that package grpo defines.
const (
	LossCISPO Loss = "cispo" // clipped importance-sampling weight on the log-likelihood (MiniMax-M1); the default
	LossPPO   Loss = "ppo"   // clipped surrogate (Schulman et al. 2017)
)

// AdvantageScale says what a group's centred rewards are divided by.
type AdvantageScale string

// How rewards become advantages.
const (
	// ScaleStd is the population standard deviation of the group (GRPO). The default.
	ScaleStd AdvantageScale = "std"
	// ScaleNone is nothing, as in Dr. GRPO. What else Dr. GRPO changes is not part of it: the tokens of a trajectory
	// still weigh 1/length, and advantages are still normalised over the batch, unless NormalizeAdvantages is false.
	ScaleNone AdvantageScale = "none"
)

// Baseline says what is subtracted from a reward.
type Baseline string

// Baselines of a group.
const (
	BaselineMean     Baseline = "mean"          // mean of the group; the default
	BaselineLeaveOne Baseline = "leave-one-out" // mean of the others (RLOO)
)

// TrainConfig holds what a training step may vary. Zero values and a nil *TrainConfig are the defaults.
type TrainConfig struct {
	// LearningRate of AdamW. Default 5e-6, ART's. Small models want more: 1e-4 to 1e-3 for the built-in one. A step
	// that diverges is an error, and the model stays at the step before.
	LearningRate float64
	// Loss defaults to [LossCISPO].
	Loss Loss
	// Epsilon and EpsilonHigh bound the importance ratio to [1-Epsilon, 1+EpsilonHigh].
	// nil is 1 and 4 for CISPO, 0.2 and Epsilon for PPO.
	//
	// The ratio is that of a token's probability under the policy being trained to [Sample].Logprobs: both of the whole
	// vocabulary at temperature 1, whatever temperature, top-p and top-k it was sampled with. So it is 1 for what the
	// policy itself sampled, with any settings, and departs from 1 only as the policy moves: the bounds measure that.
	// It does not correct for the settings. Tokens come from [Sample].Sampled, where likely ones are more frequent than
	// under the policy when the temperature is below 1, and what top-p or top-k cut off never occurs. Temperature 1,
	// without the others, has no such bias.
	Epsilon, EpsilonHigh *float64
	// Baseline defaults to [BaselineMean].
	Baseline Baseline
	// Scale defaults to [ScaleStd].
	Scale AdvantageScale
	// NormalizeAdvantages divides advantages by their mean absolute value over the trained tokens of the batch, so that
	// the size of a step does not depend on the size of rewards. nil is true. It is apart from Scale, which is by group.
	NormalizeAdvantages *bool
	// Epochs is how often the batch is passed over. Default 1.
	Epochs int
	// MiniBatches is the number of optimizer steps that one epoch is split into: as many as there are sequences, at the most.
	// Default 1.
	MiniBatches int
	// MicroBatch bounds the number of sequences that are computed at once; gradients are accumulated over micro-batches
	// and the result does not depend on it but for rounding. 0 lets the backend choose.
	MicroBatch int
	// MaxGradNorm bounds the global norm of the gradient. Default 0.1, ART's; negative is off.
	MaxGradNorm float64
	// Beta1, Beta2 and Eps are AdamW's. Defaults 0.9, 0.99, 1e-8.
	Beta1, Beta2, Eps float64
	// WeightDecay is AdamW's, decoupled. nil is 0.1, ART's.
	WeightDecay *float64
	// Progress is called after each optimizer step. May be nil.
	Progress func(TrainProgress)
}

// SFTConfig holds what supervised training may vary. Zero values and a nil *SFTConfig are the defaults.
type SFTConfig struct {
	// LearningRate of AdamW. Default 5e-5.
	LearningRate float64
	// BatchSize is the number of histories in an optimizer step, at the most: an epoch is split evenly. A trajectory has one, and
	// its additional ones. Default 8.
	BatchSize int
	// Epochs over the data. Default 1.
	Epochs int
	// Warmup is the fraction of all optimizer steps, 0 to 1, over which the learning rate rises from 0. Default 0.
	Warmup float64
	// Decay is the fraction of the learning rate, 0 to 1, that is left at the end of a linear decay. nil is 1: constant.
	Decay *float64
	// MaxGradNorm bounds the global norm of the gradient. Default 1; negative is off.
	MaxGradNorm float64
	// WeightDecay is AdamW's, decoupled. Default 0.
	WeightDecay float64
	// Seed of the order of the data. Default 0.
	Seed uint64
	// Progress is called after each optimizer step. May be nil.
	Progress func(TrainProgress)
}

// TrainProgress tells how far a training call is.
type TrainProgress struct {
	Done, Total int // optimizer steps
	// Metrics are those of [TrainResult], of the optimizer steps made so far; the backend may leave out some.
	Metrics map[string]float64
}

// TrainResult tells what a training call did.
type TrainResult struct {
	// Step is the new policy step: k+1 of an update from k, whose metrics are those of row k.
	Step int
	// Metrics of the step, each described in the documentation of the backend.
	Metrics map[string]float64
	// Skipped lists what was not trained on, and why.
	Skipped []Skip
}

// Skip is a group or a trajectory that was left out of training. Supervised training leaves out single histories of a trajectory,
// with a Skip for each.
type Skip struct {
	Group      int // index in the call; 0 of supervised training, whose trajectories are one group
	Trajectory int // index in the group; -1 for the whole group
	Reason     SkipReason
	Detail     string // for people: "513 tokens, the context has 512"; may be empty
}

// SkipReason says why something was not trained on.
type SkipReason string

// Reasons to skip.
const (
	SkipEmptyGroup    SkipReason = "empty_group"    // no trajectory in the group
	SkipSingleton     SkipReason = "singleton"      // one usable trajectory: nothing to compare it with
	SkipNoVariance    SkipReason = "no_variance"    // all rewards are equal, to 1e-12 of their size
	SkipBadReward     SkipReason = "bad_reward"     // NaN, infinite, or so large that its advantage is
	SkipNoSamples     SkipReason = "no_samples"     // nothing in it was sampled by the model
	SkipTooLong       SkipReason = "too_long"       // longer than the model's context
	SkipBadSample     SkipReason = "bad_sample"     // ids and logprobs that do not fit together, or are not finite or not in the vocabulary
	SkipZeroAdvantage SkipReason = "zero_advantage" // its reward equals its baseline: nothing to learn from
)
