package grpo

import (
	"errors"
	"fmt"
)

// Loss names a policy loss.
type Loss string

// Losses; [PolicyLoss] has their formulas.
const (
	LossCISPO Loss = "cispo" // clipped importance weight on the log-likelihood; the default
	LossPPO   Loss = "ppo"   // clipped surrogate
)

// LossConfig says which loss is computed. The zero value is the default.
type LossConfig struct {
	// Loss defaults to LossCISPO.
	Loss Loss
	// Epsilon and EpsilonHigh bound the importance ratio to [1-Epsilon, 1+EpsilonHigh].
	// nil is 1 and 4 for CISPO, 0.2 and Epsilon for PPO.
	Epsilon, EpsilonHigh *float64
}

// Validate lists every problem.
func (c LossConfig) Validate() error {
	var errs []error
	if l := c.loss(); l != LossCISPO && l != LossPPO {
		errs = append(errs, fmt.Errorf("grpo: unknown loss %q, use %q or %q", l, LossCISPO, LossPPO))
	}
	check := func(name string, value *float64) {
		if value != nil && !(finite(*value) && *value >= 0) {
			errs = append(errs, fmt.Errorf("grpo: %s is %v, it must be finite and not negative", name, *value))
		}
	}
	check("epsilon", c.Epsilon)
	check("epsilon high", c.EpsilonHigh)
	return errors.Join(errs...)
}

// Bounds returns the range that the importance ratio is clipped to.
func (c LossConfig) Bounds() (lo, hi float64) {
	epsilon, high := 1.0, 4.0
	if c.loss() == LossPPO {
		epsilon = 0.2
	}
	if c.Epsilon != nil {
		epsilon = *c.Epsilon
	}
	if c.loss() == LossPPO {
		high = epsilon
	}
	if c.EpsilonHigh != nil {
		high = *c.EpsilonHigh
	}
	return 1 - epsilon, 1 + high
}

// loss returns the loss with its default.
func (c LossConfig) loss() Loss {
	if c.Loss == "" {
		return LossCISPO
	}
	return c.Loss
}
