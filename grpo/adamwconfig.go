package grpo

import (
	"errors"
	"fmt"
	"math"
)

// AdamW is the configuration of the optimizer. Zero is a legal value of every field but Eps, so start from
// [DefaultAdamW].
type AdamW struct {
	Beta1, Beta2 float64 // decay of the first and second moment per step, in [0, 1)
	Eps          float64 // added to the square root of the second moment, above 0
	WeightDecay  float64 // decoupled: fraction of a parameter that a step subtracts, times the learning rate
	MaxGradNorm  float64 // bound of the global norm of the gradient; 0 or negative is off
}

// DefaultAdamW returns ART's settings for RL: betas 0.9 and 0.99, eps 1e-8, weight decay 0.1, gradient norm 0.1.
func DefaultAdamW() AdamW {
	return AdamW{Beta1: 0.9, Beta2: 0.99, Eps: 1e-8, WeightDecay: 0.1, MaxGradNorm: 0.1}
}

// Validate lists every problem.
func (c AdamW) Validate() error {
	var errs []error
	check := func(ok bool, name string, value float64, want string) {
		if !ok {
			errs = append(errs, fmt.Errorf("grpo: adamw %s is %v, it must be %s", name, value, want))
		}
	}
	check(c.Beta1 >= 0 && c.Beta1 < 1, "beta1", c.Beta1, "in [0, 1)")
	check(c.Beta2 >= 0 && c.Beta2 < 1, "beta2", c.Beta2, "in [0, 1)")
	check(c.Eps > 0 && finite(c.Eps), "eps", c.Eps, "above 0")
	check(c.WeightDecay >= 0 && finite(c.WeightDecay), "weight decay", c.WeightDecay, "finite and not negative")
	check(finite(c.MaxGradNorm), "max grad norm", c.MaxGradNorm, "finite")
	return errors.Join(errs...)
}

// NumScalars is the length of [AdamW.Scalars].
const NumScalars = 3

// Scalars returns what changes from step to step, the [NumScalars] input of [AdamW.Step]:
//
//	lr, 1 - Beta1^step, 1 - Beta2^step
//
// step counts from 1 and is the number of updates made, this one included; a skipped update does not count. The powers
// are computed here because float32 would lose four digits of 1 - Beta2^step.
func (c AdamW) Scalars(step int, lr float64) []float32 {
	t := float64(step)
	return []float32{float32(lr), float32(1 - math.Pow(c.Beta1, t)), float32(1 - math.Pow(c.Beta2, t))}
}
