package grpo

// Shapes: N trained tokens of a micro-batch, padded. [] is a scalar.

import (
	"errors"
	"fmt"

	. "github.com/gomlx/gomlx/core/graph"
)

// PolicyKind names a policy loss.
type PolicyKind string

// Policy losses; [PolicyLoss] has their formulas.
const (
	CISPO PolicyKind = "cispo" // clipped importance weight on the log-likelihood; the default
	PPO   PolicyKind = "ppo"   // clipped surrogate
)

// maxLogRatio bounds |new-old| before it is exponentiated: exp(20) = 4.9e8 times more likely than when sampled. Beyond
// it the ratio has no gradient.
const maxLogRatio = 20.0

// PolicyLoss is the loss of tokens that a policy sampled. The zero value is the default. With A the advantage and w the
// weight of a token,
//
//	d     = new - old
//	ratio = exp(clip(d, -20, 20))
//	L     = -min(ratio·A, clip(ratio, lo, hi)·A)             (PPO)
//	L     = -stop_gradient(clip(ratio, lo, hi))·A·new        (CISPO)
//	loss  = Σ L·w / denominator
//
// where lo = 1-Epsilon and hi = 1+EpsilonHigh. Importance sampling is by token. PPO takes the gradient away from tokens
// whose ratio has left the range in the direction of A; CISPO keeps every token and bounds its weight.
//
// New and old are of the whole vocabulary at temperature 1, before temperature, top-p and top-k reshape what is sampled
// from. The ratio then compares policies: it is 1 on policy, and the bounds limit how far a policy moves from the one
// that sampled, whatever the settings. It does not turn an average over sampled tokens into one over the policy. With
// other settings than temperature 1, Σ is an average over the reshaped distribution, and tokens that top-p and top-k
// cut off are not in it. The logprob under the reshaped distribution as old would correct for temperature, at the price
// of ratios that are off 1 on policy, where the bounds clip; and it cannot bring back what was cut off.
//
// Its metrics, means over trained tokens unless they say otherwise, are
//
//	loss/policy             the loss, mean over optimizer steps
//	loss/entropy            -new: an estimate of the policy's entropy while it is close to the one that sampled, nats
//	loss/kl_old_new         exp(d) - 1 - d: the k3 estimate of KL(old ‖ new), never negative, nats
//	loss/clipped_fraction      fraction of tokens whose ratio lies outside of the bounds
//	loss/log_ratio_mean |d|, nats: what the importance ratio is exp of, from whatever cause
//	loss/log_ratio_max  maximum of |d|, nats
//
// Sources: PPO (Schulman et al. 2017, https://arxiv.org/abs/1707.06347), CISPO (MiniMax-M1, 2025,
// https://arxiv.org/abs/2506.13585), and the token mean over packed sequences of OpenPipe's ART.
type PolicyLoss struct {
	// Kind defaults to CISPO.
	Kind PolicyKind
	// Epsilon and EpsilonHigh bound the importance ratio to [1-Epsilon, 1+EpsilonHigh].
	// nil is 1 and 4 for CISPO, 0.2 and Epsilon for PPO.
	Epsilon, EpsilonHigh *float64
}

// Validate lists every problem.
func (l PolicyLoss) Validate() error {
	var errs []error
	if k := l.kind(); k != CISPO && k != PPO {
		errs = append(errs, fmt.Errorf("grpo: unknown loss %q, use %q or %q", k, CISPO, PPO))
	}
	check := func(name string, value *float64) {
		if value != nil && !(finite(*value) && *value >= 0) {
			errs = append(errs, fmt.Errorf("grpo: %s is %v, it must be finite and not negative", name, *value))
		}
	}
	check("epsilon", l.Epsilon)
	check("epsilon high", l.EpsilonHigh)
	return errors.Join(errs...)
}

// Bounds returns the range that the importance ratio is clipped to.
func (l PolicyLoss) Bounds() (lo, hi float64) {
	epsilon, high := 1.0, 4.0
	if l.kind() == PPO {
		epsilon = 0.2
	}
	if l.Epsilon != nil {
		epsilon = *l.Epsilon
	}
	if l.kind() == PPO {
		high = epsilon
	}
	if l.EpsilonHigh != nil {
		high = *l.EpsilonHigh
	}
	return 1 - epsilon, 1 + high
}

// kind returns the kind with its default.
func (l PolicyLoss) kind() PolicyKind {
	if l.Kind == "" {
		return CISPO
	}
	return l.Kind
}

// Build implements [Loss].
func (l PolicyLoss) Build(in LossInputs) (loss *Node, metrics map[string]*Node) {
	lo, hi := l.Bounds()
	logRatio := Sub(in.New, in.Old)                                  // [N]
	ratio := Exp(ClipScalar(logRatio, -maxLogRatio, maxLogRatio))    // [N]
	loss = in.Mean(l.perToken(in, ratio, ClipScalar(ratio, lo, hi))) // []
	return loss, l.metrics(loss, in, logRatio, ratio)
}

// perToken builds L [N] from ratio [N] and clipped [N], the ratio within bounds.
func (l PolicyLoss) perToken(in LossInputs, ratio, clipped *Node) *Node {
	if l.kind() == PPO {
		return Neg(Min(Mul(ratio, in.Advantage), Mul(clipped, in.Advantage)))
	}
	return Neg(Mul(Mul(StopGradient(clipped), in.Advantage), in.New))
}
