// Package credit assigns credit to tokens: rewards of groups become advantages, and advantages become weighted numbers
// of the tokens of a batch. It is the part of GRPO that needs no graph, for trainers that compute the loss elsewhere;
// package grpo has the losses.
//
//	Advantages    rewards of a group           -> one advantage per trajectory
//	Normalize     advantages, token counts     -> weights and scale of the batch
//	ShapeByKL     reference logprobs           -> advantages of tokens
//	Preference    logprobs of pairs            -> advantages of answers (DPO)
package credit

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
)

// Config says how groups of rewards become the loss of a batch: what art.TrainConfig has of it. The zero value is the
// default.
type Config struct {
	Policy     Policy
	Advantages AdvantageConfig
	Normalize  NormalizeConfig
	Correction Correction
	KL         KL
	Overlong   Overlong
	// Precalculate takes the importance ratio against logprobs that are computed before the first update, in place of
	// those of the sampler. It is on with a Correction, where the loss is not a built-in one without an importance ratio.
	Precalculate bool
}

// WithDefaults returns a copy of c in which every default is filled in, those that depend on the loss too.
func (c Config) WithDefaults() Config {
	c.Policy = c.Policy.WithDefaults()
	t, known := builtin[c.Policy.Loss]
	c.Advantages.Scale = cmp.Or(c.Advantages.Scale, t.scale, ScaleStd)
	c.Advantages.Baseline = cmp.Or(c.Advantages.Baseline, BaselineMean)
	c.Advantages.Objective = cmp.Or(c.Advantages.Objective, ObjectiveMean)
	c.Advantages.Tolerance = c.Advantages.tolerance()
	c.Normalize.Weighting = cmp.Or(c.Normalize.Weighting, t.weighting, WeightTrajectory)
	c.Normalize.Advantages = valueOr(c.Normalize.Advantages, c.Policy.Loss != DrGRPO)
	c.Correction, c.KL, c.Overlong = c.Correction.WithDefaults(), c.KL.withDefaults(), c.Overlong.withDefaults()
	c.Precalculate = c.Precalculate || c.Correction.Method != "" && (t.ratio || !known)
	return c
}

// Validate lists every problem: of each part, and of what cannot be combined. own are losses beside the built-in ones.
// The result of errors.Join has one error for each problem.
func (c Config) Validate(own ...Loss) error {
	loss := cmp.Or(c.Policy.Loss, CISPO)
	t, known := builtin[loss]
	weighting := c.Normalize
	weighting.Weighting = cmp.Or(weighting.Weighting, t.weighting)
	var found problems
	found.join(c.Policy.Validate(own...), c.Correction.Validate(), c.KL.validate(!known), c.Overlong.validate(),
		c.Advantages.validate(), weighting.validate())
	if loss == Reinforce && c.Policy.KimiTau == 0 || loss == CrossEntropy {
		found.check(!c.Precalculate || c.Correction.Method != "" || c.KL.Advantage,
			"precalculate logprobs does nothing: loss %q has no importance ratio", loss)
	}
	if loss == CrossEntropy { // which takes the sign of advantages: nothing may change their size alone
		for _, option := range []struct {
			fits bool
			what string
		}{
			{c.Normalize.Balance == 0, "advantage balance"},
			{c.Advantages.Scale == "" || c.Advantages.Scale == ScaleStd, "scale"},
			{c.Advantages.Baseline == "" || c.Advantages.Baseline == BaselineMean, "baseline"},
			{c.Normalize.Advantages == nil || *c.Normalize.Advantages, "normalize advantages"},
		} {
			found.check(option.fits, "loss %q takes no %s: it uses the sign of advantages only", CrossEntropy, option.what)
		}
		found.check(!c.KL.Advantage,
			"loss %q takes no KL in advantages, which would choose the tokens that are trained on: leave out KL.Advantage for "+
				"a penalty in the loss", CrossEntropy)
	}
	switch c.Advantages.Objective {
	case ObjectiveMaxK:
		found.check(c.Normalize.Balance == 0, "objective %q takes no advantage balance: no advantage is negative",
			ObjectiveMaxK)
		found.check(c.Policy.DualClip == 0 || c.Policy.KimiTau != 0 || c.KL.Advantage,
			"objective %q takes no dual clip: no advantage is negative", ObjectiveMaxK)
	case ObjectivePassK:
		found.check(c.Overlong.Longest == 0,
			"objective %q needs rewards 0 and 1, which Overlong changes: leave Overlong out, or take MaskTruncated or "+
				"objective %q", ObjectivePassK, ObjectiveMaxK)
	}
	return found.err()
}

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

// problems collects everything that is wrong with a configuration.
type problems []error

func (p *problems) addf(format string, args ...any) { *p = append(*p, fmt.Errorf(format, args...)) }

func (p *problems) check(ok bool, format string, args ...any) {
	if !ok {
		p.addf(format, args...)
	}
}

func (p *problems) notNegative(name string, x *float64) {
	if x != nil {
		p.check(finite(*x) && *x >= 0, "%s is %v, want a finite number >= 0", name, *x)
	}
}

func (p *problems) join(parts ...error) {
	for _, err := range parts {
		if list, ok := err.(interface{ Unwrap() []error }); ok {
			*p = append(*p, list.Unwrap()...)
		} else if err != nil {
			*p = append(*p, err)
		}
	}
}

func (p problems) err() error { return errors.Join(p...) }

func checkName[T ~string](p *problems, what string, got T, known ...T) {
	p.check(got == "" || slices.Contains(known, got), "unknown %s %q, want one of %q", what, got, known)
}

func valueOr[T any](p *T, v T) *T {
	if p != nil {
		v = *p
	}
	return &v
}
