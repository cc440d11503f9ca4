package credit

import "cmp"

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

// WithDefaults returns a copy of k with the estimator of a penalty filled in.
func (k KL) WithDefaults() KL {
	switch {
	case k.Coef == 0:
	case k.Advantage:
		k.Estimator = cmp.Or(k.Estimator, K1)
	default:
		k.Estimator = cmp.Or(k.Estimator, K3)
	}
	return k
}

// Validate lists every problem. reference says that the loss may take the reference without a penalty, as one that is
// not built in may: its backend knows.
func (k KL) Validate(reference bool) error {
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
