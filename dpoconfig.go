package art

import "cmp"

// DPOConfig holds the options of training on preferences. Zero values and a nil *DPOConfig are the defaults.
type DPOConfig struct {
	// Beta is how strongly the policy is kept close to the reference. Default 0.1, and 5 with LengthNormalized, as in the
	// papers.
	Beta float64
	// LabelSmoothing is the chance that a pair is labelled the wrong way round, 0 up to below 0.5 (conservative DPO).
	// Default 0.
	LabelSmoothing float64
	// LengthNormalized divides the log-ratio of an answer by its number of tokens (Tülu 3), so that long answers do not
	// count more. Default false.
	LengthNormalized bool
	// ReferenceBase takes the base model without an adapter as the reference. By default it is the step that training
	// starts from, as it was before the call: several calls then move on from each other's result.
	ReferenceBase bool
	// LearningRate of AdamW. Default 5e-6. Small models need more: 1e-4 to 1e-3 for the built-in one.
	LearningRate float64
	// BatchSize is the greatest number of pairs in an optimizer step; an epoch is split evenly. Default 8.
	BatchSize int
	// Epochs over the data. Default 1.
	Epochs int
	// Warmup is the fraction of all optimizer steps, 0 to 1, over which the learning rate rises from 0. Default 0.
	Warmup float64
	// Decay is the fraction of the learning rate, 0 to 1, that is left at the end. nil is 1: constant.
	Decay *float64
	// Schedule is the shape of the decay. Default [ScheduleLinear].
	Schedule Schedule
	// MaxGradNorm clips the global norm of the gradient. Default 1; negative is off.
	MaxGradNorm float64
	// WeightDecay is AdamW's, decoupled. Default 0.
	WeightDecay float64
	// Seed shuffles the pairs. Default 0.
	Seed uint64
	// Progress is called after each optimizer step. May be nil.
	Progress func(TrainProgress) `json:"-"`
}

// WithDefaults returns a copy of c in which every default that its fields document is filled in. A nil c is all
// defaults.
func (c *DPOConfig) WithDefaults() *DPOConfig {
	var d DPOConfig
	if c != nil {
		d = *c
	}
	beta := 0.1
	if d.LengthNormalized {
		beta = 5
	}
	d.Beta = cmp.Or(d.Beta, beta)
	d.LearningRate = cmp.Or(d.LearningRate, 5e-6)
	d.BatchSize = cmp.Or(d.BatchSize, 8)
	d.Epochs = cmp.Or(d.Epochs, 1)
	d.Decay, d.Schedule = valueOr(d.Decay, 1), cmp.Or(d.Schedule, ScheduleLinear)
	d.MaxGradNorm = cmp.Or(d.MaxGradNorm, 1)
	return &d
}

// Validate returns an [ErrInvalid] that lists every problem of c. A nil c is valid. [Model.TrainDPO] calls it.
func (c *DPOConfig) Validate() error {
	if c == nil {
		return nil
	}
	var p problems
	p.notNegative("beta", &c.Beta)
	p.check(c.LabelSmoothing >= 0 && c.LabelSmoothing < 0.5, "label smoothing is %v, want 0 <= label smoothing < 0.5",
		c.LabelSmoothing)
	p.notNegative("learning rate", &c.LearningRate)
	p.check(c.BatchSize >= 0, "batch size is %d, want >= 0", c.BatchSize)
	p.check(c.Epochs >= 0, "epochs is %d, want >= 0", c.Epochs)
	p.check(c.Warmup >= 0 && c.Warmup <= 1, "warmup is %v, want 0 <= warmup <= 1", c.Warmup)
	p.check(c.Decay == nil || *c.Decay >= 0 && *c.Decay <= 1, "decay is %v, want 0 <= decay <= 1", deref(c.Decay))
	checkSchedule(&p, c.Schedule)
	p.check(finite(c.MaxGradNorm), "max grad norm is %v, want a finite number", c.MaxGradNorm)
	p.notNegative("weight decay", &c.WeightDecay)
	return p.err("train dpo", configHint)
}
