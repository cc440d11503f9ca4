package art

import (
	"cmp"
	"slices"
)

// lossTraits are the defaults that depend on the loss, and the options that it has.
type lossTraits struct {
	low, high float64 // epsilons; a high one of 0 is the low one
	bounds    bool    // it clips the importance ratio
	surrogate bool    // it has the form of PPO
	ratio     bool    // it has an importance ratio
	kimi      bool    // it takes KimiTau
	level     Level   // default LevelToken
	scale     AdvantageScale
	weighting Weighting
}

// clipped are the traits of PPO.
var clipped = lossTraits{low: 0.2, bounds: true, surrogate: true, ratio: true, kimi: true}

// builtinLosses are the losses that every backend with policy losses has. TestLosses in backend/local holds them
// against package grpo.
var builtinLosses = map[Loss]lossTraits{
	LossCISPO:              {low: 1, high: 4, bounds: true, ratio: true, kimi: true},
	LossPPO:                clipped,
	LossGRPO:               clipped,
	LossDrGRPO:             clipped.with(func(t *lossTraits) { t.scale, t.weighting = ScaleNone, WeightConstant }),
	LossDAPO:               clipped.with(func(t *lossTraits) { t.high, t.weighting = 0.28, WeightToken }),
	LossGSPO:               clipped.with(func(t *lossTraits) { t.low, t.high, t.level = 3e-4, 4e-4, LevelSequence }),
	LossImportanceSampling: {ratio: true, kimi: true},
	LossReinforce:          {kimi: true},
	LossDRO:                {},
	LossCrossEntropy:       {},
}

// with returns edited traits.
func (t lossTraits) with(edit func(t *lossTraits)) lossTraits {
	edit(&t)
	return t
}

// BuiltinLosses lists the losses that package grpo defines, the default first.
func BuiltinLosses() []Loss {
	return []Loss{LossCISPO, LossPPO, LossGRPO, LossDrGRPO, LossDAPO, LossGSPO, LossImportanceSampling, LossReinforce,
		LossDRO, LossCrossEntropy}
}

// fillLoss sets the defaults that depend on the loss. A loss of a backend's own has no options.
func (c *TrainConfig) fillLoss() {
	c.Loss = cmp.Or(c.Loss, LossCISPO)
	traits := builtinLosses[c.Loss]
	c.Scale = cmp.Or(c.Scale, traits.scale, ScaleStd)
	c.Weighting = cmp.Or(c.Weighting, traits.weighting, WeightTrajectory)
	c.NormalizeAdvantages = valueOr(c.NormalizeAdvantages, c.Loss != LossDrGRPO)
	c.Level = cmp.Or(c.Level, traits.level, LevelToken)
	if c.Loss == LossDRO {
		c.DROBeta = cmp.Or(c.DROBeta, 0.05)
	}
	if !traits.bounds {
		return
	}
	c.Epsilon = valueOr(c.Epsilon, traits.low)
	high := traits.high
	if high == 0 {
		high = *c.Epsilon
	}
	c.EpsilonHigh = valueOr(c.EpsilonHigh, high)
}

// checkLoss checks the loss and its options. own are losses of the backend, which have no options.
func (c *TrainConfig) checkLoss(p *problems, own []Loss) {
	p.notNegative("epsilon", c.Epsilon)
	p.notNegative("epsilon high", c.EpsilonHigh)
	p.notNegative("dual clip", &c.DualClip)
	p.notNegative("kimi tau", &c.KimiTau)
	p.notNegative("DRO beta", &c.DROBeta)
	checkName(p, "level", c.Level, LevelToken, LevelSequence, LevelAverage, LevelGeometric)
	loss := cmp.Or(c.Loss, LossCISPO)
	traits, known := builtinLosses[loss]
	if !known && !slices.Contains(own, loss) {
		p.addf("unknown loss %q, want one of %q", loss, append(BuiltinLosses(), own...))
		return
	}
	for _, option := range []struct {
		set, fits bool
		what      string
	}{
		{c.Epsilon != nil || c.EpsilonHigh != nil, traits.bounds, "epsilon: it has no bounds"},
		{c.MaskRatio, traits.bounds, "mask ratio: it has no bounds"},
		{c.Level != "" && c.Level != LevelToken, traits.ratio, "level: it has no importance ratio"},
		{c.DualClip != 0, traits.surrogate, "dual clip: it has not the form of PPO"},
		{c.KimiTau != 0, traits.kimi, "kimi tau"},
		{c.DROBeta != 0, loss == LossDRO, "DRO beta"},
	} {
		p.check(!option.set || option.fits, "loss %q takes no %s", loss, option.what)
	}
	if loss == LossCrossEntropy {
		c.checkLikelihood(p)
	}
	if d := (&TrainConfig{Loss: c.Loss, Epsilon: c.Epsilon, EpsilonHigh: c.EpsilonHigh}).WithDefaults(); traits.surrogate {
		p.check(c.DualClip == 0 || c.DualClip > 1+*d.EpsilonHigh, "dual clip is %v, want more than 1 + epsilon high, %v",
			c.DualClip, 1+*d.EpsilonHigh)
	}
}

// checkLikelihood checks that nothing is set that changes the size of advantages alone: [LossCrossEntropy] takes their
// sign.
func (c *TrainConfig) checkLikelihood(p *problems) {
	for _, option := range []struct {
		fits bool
		what string
	}{
		{c.AdvantageBalance == 0, "advantage balance"},
		{c.Scale == "" || c.Scale == ScaleStd, "scale"},
		{c.Baseline == "" || c.Baseline == BaselineMean, "baseline"},
		{c.NormalizeAdvantages == nil || *c.NormalizeAdvantages, "normalize advantages"},
	} {
		p.check(option.fits, "loss %q takes no %s: it uses the sign of advantages only", LossCrossEntropy, option.what)
	}
	p.check(!c.KL.Advantage,
		"loss %q takes no KL in advantages, which would choose the tokens that are trained on: leave out KL.Advantage for "+
			"a penalty in the loss", LossCrossEntropy)
}

// fillTerms sets the defaults of what is on beside the loss.
func (c *TrainConfig) fillTerms() {
	switch c.Correction.Method {
	case CorrectTruncate:
		c.Correction.High = cmp.Or(c.Correction.High, 2)
	case CorrectMask:
		c.Correction.Low, c.Correction.High = cmp.Or(c.Correction.Low, 0.5), cmp.Or(c.Correction.High, 5)
	}
	traits, builtin := builtinLosses[c.Loss]
	if c.Correction.Method != "" && (traits.ratio || !builtin) {
		c.PrecalculateLogprobs = true
	}
	if c.KL.Coef != 0 {
		estimator := KLK3
		if c.KL.Advantage {
			estimator = KLK1
		}
		c.KL.Estimator = cmp.Or(c.KL.Estimator, estimator)
	}
	if c.Overlong.Longest != 0 {
		c.Overlong.Penalty = cmp.Or(c.Overlong.Penalty, 1)
	}
}

// checkTerms checks what is computed beside the loss: an option of something that is off is an error.
func (c *TrainConfig) checkTerms(p *problems) {
	c.Correction.check(p)
	_, builtin := builtinLosses[cmp.Or(c.Loss, LossCISPO)]
	c.KL.check(p, builtin)
	c.Overlong.check(p)
	p.notNegative("entropy bonus", &c.EntropyBonus)
	if c.Loss == LossReinforce && c.KimiTau == 0 || c.Loss == LossCrossEntropy {
		p.check(!c.PrecalculateLogprobs || c.Correction.Method != "" || c.KL.Advantage,
			"precalculate logprobs does nothing: loss %q has no importance ratio", c.Loss)
	}
}

func (c Correction) check(p *problems) {
	checkName(p, "correction", c.Method, CorrectTruncate, CorrectMask)
	p.check(c.Method != "" || c == Correction{}, "correction has options %+v and no method", c)
	d := TrainConfig{Correction: c}
	d.fillTerms()
	lo, hi := d.Correction.Low, d.Correction.High
	p.check(c.Method == "" || finite(lo) && finite(hi) && lo >= 0 && lo < hi,
		"correction is between %v and %v, want 0 <= low < high", lo, hi)
}

// check checks the options. A loss that is not built in may take the reference without a penalty; its backend knows.
func (k KL) check(p *problems, builtin bool) {
	p.notNegative("KL coefficient", &k.Coef)
	checkName(p, "KL estimator", k.Estimator, KLK1, KLK2, KLK3)
	penalty := k
	if !builtin {
		penalty.Step, penalty.Lag = nil, 0
	}
	p.check(k.Coef != 0 || penalty == KL{}, "KL has options %+v and no coefficient", k)
	p.check(k.Step == nil || *k.Step >= 0, "KL step is %d, want >= 0", deref(k.Step))
	p.check(k.Lag >= 0, "KL lag is %d, want >= 0", k.Lag)
	p.check(k.Step == nil || k.Lag == 0, "KL has step %d and lag %d, want one of them", deref(k.Step), k.Lag)
}

func (o Overlong) check(p *problems) {
	p.check(o.Longest >= 0, "overlong longest is %d, want >= 0", o.Longest)
	p.check(o.Longest != 0 || o == Overlong{}, "overlong has options %+v and no longest", o)
	p.check(o.Buffer >= 0 && o.Buffer <= max(o.Longest, 0), "overlong buffer is %d, want 0 to %d", o.Buffer, o.Longest)
	p.notNegative("overlong penalty", &o.Penalty)
}
