package credit

// Reason says why something was not trained on.
type Reason string

// Reasons. The empty one means that it is trained on. [Advantages] has those of a group; the others are of trainers and
// of the pipeline.
const (
	ReasonNone          Reason = ""
	ReasonEmptyGroup    Reason = "empty_group"    // no trajectory in the group
	ReasonSingleton     Reason = "singleton"      // one usable trajectory: nothing to compare it with
	ReasonNoVariance    Reason = "no_variance"    // all rewards lie within the tolerance of one another or of their mean
	ReasonBadReward     Reason = "bad_reward"     // NaN, infinite, or so large that its advantage overflows float64
	ReasonNotBinary     Reason = "not_binary"     // a reward of the group is not 0 or 1, as ObjectivePassK needs
	ReasonSmallGroup    Reason = "small_group"    // fewer usable trajectories than K of ObjectivePassK or ObjectiveMaxK
	ReasonNoSamples     Reason = "no_samples"     // nothing in it was sampled by the model
	ReasonTooLong       Reason = "too_long"       // longer than the model's context
	ReasonBadSample     Reason = "bad_sample"     // inconsistent lengths, logprobs not finite, ids not in the vocabulary
	ReasonZeroAdvantage Reason = "zero_advantage" // its reward equals its baseline: nothing to learn from
	ReasonTruncated     Reason = "truncated"      // all of its replies hit the limit of tokens, and MaskTruncated is set
	ReasonStale         Reason = "stale"          // older than the pipeline's MaxStaleness
	// ReasonNotFinite is the reason for trajectories because of which an update was skipped: those whose loss or gradient
	// is NaN or infinite, or all of the update when only the sum of their gradients overflows.
	ReasonNotFinite Reason = "not_finite"
)
