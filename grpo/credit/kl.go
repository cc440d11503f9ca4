package credit

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// KL keeps the policy close to a reference: the base model, unless Step or Lag say otherwise. With k the estimate of a
// token, Coef·Σ weight·k / N is added to the loss (GRPO, Shao et al. 2024, https://arxiv.org/abs/2402.03300). It costs
// a forward pass, and slows learning. Take it where a reward can be gamed or other abilities must stay; DAPO and Dr.
// GRPO leave it out.
//
// A loss of one's own that uses a reference (grpo.LossSpec) has that of Step and Lag too, without a penalty where Coef
// is 0.
type KL struct {
	// Coef is the strength. 0, the default, is off; 0.001 to 0.05 is usual, and 0.04 is that of the paper.
	Coef float64
	// Estimator defaults to [K3], and to [K1] with Advantage.
	Estimator Estimator
	// Advantage adds Coef·(mean k - k) to the advantages of tokens, from the logprobs before the first update, in place
	// of a term of the loss, as ART does. Default false. It keeps the mean advantage, and the bounds of the loss hold for
	// it too. [ShapeByKL] has more.
	Advantage bool
	// Step is the step of the reference, whose checkpoint must exist. nil, the default, is the base model without an
	// adapter. ART's kl_penalty_reference_step. For a run that begins with supervised training: the step after that.
	Step *int
	// Lag takes the step that is so many before the one being trained, or the first. ART's kl_penalty_step_lag. 0, the
	// default, is off. It lets the policy go far, slowly. The run must keep as many checkpoints.
	Lag int
}

// withDefaults returns a copy of k with the estimator of a penalty filled in.
func (k KL) withDefaults() KL {
	switch {
	case k.Coef == 0:
	case k.Advantage:
		k.Estimator = cmp.Or(k.Estimator, K1)
	default:
		k.Estimator = cmp.Or(k.Estimator, K3)
	}
	return k
}

// validate lists every problem. reference says that the loss may take the reference without a penalty, as one that is
// not built in may: its backend knows.
func (k KL) validate(reference bool) error {
	var found problems
	found.notNegative("KL coefficient", &k.Coef)
	found.join(k.Estimator.Validate())
	penalty := k
	if reference {
		penalty.Step, penalty.Lag = nil, 0
	}
	found.check(k.Coef != 0 || penalty == KL{}, "KL has options %+v and no coefficient", k)
	if k.Step != nil {
		found.check(*k.Step >= 0, "KL step is %d, want >= 0", *k.Step)
		found.check(k.Lag == 0, "KL has step %d and lag %d, want one of them", *k.Step, k.Lag)
	}
	found.check(k.Lag >= 0, "KL lag is %d, want >= 0", k.Lag)
	return found.err()
}

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

// ShapeByKL returns the sequences of a normalised batch with a penalty for moving away from a reference in their
// advantages; the ones given stay as they are. With k the [Estimator] of a token, from d = old - reference, and mean k
// over all trained tokens of the batch, which it returns,
//
//	shaping = strength·(mean k - k)
//
// so that the mean advantage does not change: tokens that are further away than others become less likely. Unlike a
// term of the loss it is clipped with the advantage and has no gradient of its own. Take it where a reward can be
// gamed; strength is usually 0.001 to 0.05, for advantages of mean 1. K1 is usual; "" is K1. Every sequence needs
// reference logprobs. Old are those of the policy before its update where Sequence.Old is set, else those of the
// sampler.
//
// Source: OpenPipe's ART (kl_penalty_coef).
func ShapeByKL(seqs []Sequence, strength float64, estimator Estimator) (shaped []Sequence, mean float64, err error) {
	if err := estimator.Validate(); err != nil {
		return nil, 0, err
	}
	if !(finite(strength) && strength >= 0) {
		return nil, 0, fmt.Errorf("credit: KL coefficient is %v, it must be finite and not negative", strength)
	}
	if err := ValidateAll(seqs); err != nil {
		return nil, 0, err
	}
	shaped = slices.Clone(seqs)
	for i := range shaped {
		s := &shaped[i]
		if s.Reference == nil {
			return nil, 0, fmt.Errorf("credit: sequence %d has no reference logprobs", i)
		}
		s.Shaping = make([]float64, len(s.IDs))
		for j, trained := range s.Trained {
			if trained {
				s.Shaping[j] = estimator.value(float64(at(s.Old, j, s.Logprobs[j])) - float64(s.Reference[j]))
				mean += s.Shaping[j]
			}
		}
	}
	mean /= float64(max(NumTrained(seqs), 1))
	for i := range shaped {
		for j, trained := range shaped[i].Trained {
			if trained {
				shaped[i].Shaping[j] = strength * (mean - shaped[i].Shaping[j])
			}
		}
	}
	return shaped, mean, nil
}
