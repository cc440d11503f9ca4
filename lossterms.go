package art

import "cmp"

// fillTerms sets the defaults of what is on beside the loss.
func (c *TrainConfig) fillTerms() {
	switch c.Correction.Method {
	case CorrectTruncate:
		c.Correction.High = cmp.Or(c.Correction.High, 2)
	case CorrectMask:
		c.Correction.Low, c.Correction.High = cmp.Or(c.Correction.Low, 0.5), cmp.Or(c.Correction.High, 5)
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
	c.KL.check(p)
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

func (k KL) check(p *problems) {
	p.notNegative("KL coefficient", &k.Coef)
	checkName(p, "KL estimator", k.Estimator, KLK1, KLK2, KLK3)
	p.check(k.Coef != 0 || k == KL{}, "KL has options %+v and no coefficient", k)
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
