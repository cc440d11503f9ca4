package credit

import "math"

// Estimator estimates KL(policy ‖ reference) from one token, whose logprobs differ by d = policy - reference.
//
// Source: J. Schulman, Approximating KL Divergence, 2020, http://joschu.net/blog/kl-approx.html.
type Estimator string

// Estimators.
const (
	// K1 is d: unbiased, of high variance, negative for half of the tokens. In a loss its gradient is 0 on average; it
	// belongs into the advantage.
	K1 Estimator = "k1"
	// K2 is d²/2: biased, of low variance. In a loss it has the gradient of the divergence on policy; take it there.
	K2 Estimator = "k2"
	// K3 is exp(-d) + d - 1: unbiased, of low variance, never negative. GRPO's (Shao et al. 2024,
	// https://arxiv.org/abs/2402.03300), to compare with: in a loss it has the gradient of KL(reference ‖ policy) on
	// policy, which pulls hard at what the reference has and the policy has lost.
	K3 Estimator = "k3"
)

// Validate reports an unknown estimator. "" is valid.
func (e Estimator) Validate() error {
	var found problems
	checkName(&found, "KL estimator", e, K1, K2, K3)
	return found.err()
}

// maxLogRatio bounds a log-ratio before it is exponentiated, as package grpo does.
const maxLogRatio = 20.0

// value is the estimate of a token; "" is K1.
func (e Estimator) value(d float64) float64 {
	switch e {
	case K2:
		return d * d / 2
	case K3:
		d = max(-maxLogRatio, min(d, maxLogRatio))
		return math.Expm1(-d) + d
	default:
		return d
	}
}
