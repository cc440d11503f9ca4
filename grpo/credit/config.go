package credit

import "cmp"

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
	c.Correction, c.KL, c.Overlong = c.Correction.WithDefaults(), c.KL.WithDefaults(), c.Overlong.WithDefaults()
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
	found.join(c.Policy.Validate(own...), c.Correction.Validate(), c.KL.Validate(!known), c.Overlong.Validate(),
		c.Advantages.Validate(), weighting.Validate())
	if loss == Reinforce && c.Policy.KimiTau == 0 || loss == CrossEntropy {
		found.check(!c.Precalculate || c.Correction.Method != "" || c.KL.Advantage,
			"precalculate logprobs does nothing: loss %q has no importance ratio", loss)
	}
	if loss == CrossEntropy {
		c.checkSigns(&found)
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

// checkSigns checks that nothing is set that changes the size of advantages alone: [CrossEntropy] takes their sign.
func (c Config) checkSigns(found *problems) {
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
