package art

import (
	"cmp"
	"slices"
)

const configHint = "zero values are the defaults: leave out what need not change"

// WithDefaults returns a copy of c in which every default that its fields document is filled in, MicroBatch excepted,
// where 0 has a meaning. A nil c is all defaults.
func (c *TrainConfig) WithDefaults() *TrainConfig {
	var d TrainConfig
	if c != nil {
		d = *c
	}
	d.LearningRate = cmp.Or(d.LearningRate, 5e-6)
	d.Loss = cmp.Or(d.Loss, LossCISPO)
	d.Baseline = cmp.Or(d.Baseline, BaselineMean)
	d.Scale = cmp.Or(d.Scale, ScaleStd)
	d.NormalizeAdvantages = valueOr(d.NormalizeAdvantages, true)
	d.Epochs = cmp.Or(d.Epochs, 1)
	d.MiniBatches = cmp.Or(d.MiniBatches, 1)
	d.MaxGradNorm = cmp.Or(d.MaxGradNorm, 0.1)
	d.Beta1, d.Beta2, d.Eps = cmp.Or(d.Beta1, 0.9), cmp.Or(d.Beta2, 0.99), cmp.Or(d.Eps, 1e-8)
	d.WeightDecay = valueOr(d.WeightDecay, 0.1)
	d.fillEpsilons()
	return &d
}

// fillEpsilons sets the bounds of the importance ratio, which depend on the loss.
func (c *TrainConfig) fillEpsilons() {
	low, high := 1.0, 4.0
	if c.Loss == LossPPO {
		low = 0.2
		high = *valueOr(c.Epsilon, low)
	}
	c.Epsilon, c.EpsilonHigh = valueOr(c.Epsilon, low), valueOr(c.EpsilonHigh, high)
}

// valueOr returns a pointer to a copy of *p, or to v when p is nil.
func valueOr[T any](p *T, v T) *T {
	if p != nil {
		v = *p
	}
	return &v
}

// Validate returns an [ErrInvalid] that lists every problem of c. A nil c is valid. [Model.Train] calls it.
func (c *TrainConfig) Validate() error {
	if c == nil {
		return nil
	}
	var p problems
	p.notNegative("learning rate", &c.LearningRate)
	checkName(&p, "loss", c.Loss, LossCISPO, LossPPO)
	p.notNegative("epsilon", c.Epsilon)
	p.notNegative("epsilon high", c.EpsilonHigh)
	checkName(&p, "baseline", c.Baseline, BaselineMean, BaselineLeaveOne)
	checkName(&p, "scale", c.Scale, ScaleStd, ScaleNone)
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

// checkName checks that a name is empty or among the known ones.
func checkName[T ~string](p *problems, what string, got T, known ...T) {
	p.check(got == "" || slices.Contains(known, got), "unknown %s %q, want one of %q", what, got, known)
}

// WithDefaults returns a copy of c in which every default that its fields document is filled in. A nil c is all defaults.
func (c *SFTConfig) WithDefaults() *SFTConfig {
	var d SFTConfig
	if c != nil {
		d = *c
	}
	d.LearningRate = cmp.Or(d.LearningRate, 5e-5)
	d.BatchSize = cmp.Or(d.BatchSize, 8)
	d.Epochs = cmp.Or(d.Epochs, 1)
	d.Decay = valueOr(d.Decay, 1)
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
	p.check(c.Decay == nil || *c.Decay >= 0 && *c.Decay <= 1, "decay is %v, want 0 <= decay <= 1", deref(c.Decay))
	p.check(finite(c.MaxGradNorm), "max grad norm is %v, want a finite number", c.MaxGradNorm)
	p.notNegative("weight decay", &c.WeightDecay)
	return p.err("train sft", configHint)
}

// deref returns *p, or the zero value of a nil p.
func deref[T any](p *T) T { return *valueOr(p, *new(T)) }
