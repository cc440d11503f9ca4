package grpo

// Shapes: N trained tokens of a micro-batch, padded. [] is a scalar.

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"

	. "github.com/gomlx/gomlx/core/graph"

	"github.com/goart-dev/art/grpo/credit"
)

// Corrected is a loss whose tokens are weighted by how likely they are under the policy, relative to the distribution
// that they were sampled from. With p = stop_gradient(new), or old if FromOld is set,
//
//	r = exp(clip(p - behavior, -20, 20))
//	w = w·max(Low, min(r, High))                       (Truncate)
//	w = w·r where Low <= r <= High, 0 elsewhere        (Mask)
//
// Set FromOld for a loss with an importance ratio, and let old be logprobs of the policy that is trained, before its
// update. Where old are those of the sampler, r and the ratio of the loss are the same number, which counts twice.
//
// An engine that samples with other numbers than those that are trained on needs it, and so does data of old policies.
// Behavior is the logprob that the sampler recorded, of its policy or of what temperature, top-p and top-k made of it.
// Where sampler and trainer agree, as on the CPU device, r is 1 on policy, and the loss as it was. With FromOld it is
// the decoupled objective of Hilton et al. 2021, https://arxiv.org/abs/2110.00641.
//
// Its metrics are those of the loss, and, means over trained tokens,
//
//	loss/correction_mean      r
//	loss/corrected_fraction   fraction of tokens that were truncated or left out
type Corrected struct {
	Loss Loss
	// Correction has the method, by default credit.CorrectTruncate, and the bounds of r. Behavior has no effect here: it
	// chooses the logprobs in Sequence.Behavior.
	credit.Correction
	FromOld bool
}

// Validate lists every problem, those of the loss included.
func (c Corrected) Validate() error {
	return errors.Join(c.correction().Validate(), validateInner("correction", c.Loss))
}

func (c Corrected) correction() credit.Correction {
	c.Method = cmp.Or(c.Method, credit.CorrectTruncate)
	return c.Correction.WithDefaults()
}

var correctedMetrics = []Metric{
	{Name: "loss/correction_mean", Formula: "mean importance weight against what was sampled from, before its bounds",
		Healthy: "0.9 to 1.1"},
	{Name: "loss/corrected_fraction", Formula: "trained tokens whose weight was truncated, or which it left out",
		Healthy: "below 0.05"},
}

// Spec implements [Loss].
func (c Corrected) Spec() LossSpec {
	spec := c.Loss.Spec()
	d := c.correction()
	spec.Key = fmt.Sprintf("%s corrected %s %v %v %t %t", spec.Key, d.Method, d.Low, d.High, d.Sequence, c.FromOld)
	spec.Metrics = slices.Concat(spec.Metrics, correctedMetrics)
	return spec
}

// Build implements [Loss].
func (c Corrected) Build(in LossInputs) (loss *Node, metrics map[string]*Node) {
	p := StopGradient(in.New)
	if c.FromOld {
		p = in.Old
	}
	x := Sub(p, in.Behavior) // [N]
	if c.Sequence {
		x = in.SequenceSum(Mul(x, in.Mask))
	}
	ratio := boundedExp(x) // [N]
	lo, hi := c.correction().Low, c.correction().High
	g, dtype := ratio.Graph(), ratio.DType()
	outside := LogicalOr(LessThan(ratio, Scalar(g, dtype, lo)), GreaterThan(ratio, Scalar(g, dtype, hi)))
	weight := ClipScalar(ratio, lo, hi)
	if c.Method == credit.CorrectMask {
		weight = Where(outside, ZerosLike(ratio), ratio)
	}
	in.Weight = Mul(in.Weight, weight)
	loss, metrics = c.Loss.Build(in)
	metrics = maps.Clone(metrics)
	metrics["loss/correction_mean"] = ReduceAllSum(Mul(ratio, in.Mask))
	metrics["loss/corrected_fraction"] = ReduceAllSum(Mul(ConvertDType(outside, dtype), in.Mask))
	return loss, metrics
}

// Penalized is a loss that keeps the policy close to a reference, or its entropy up. With w the weight of a token, H
// the entropy of the distribution that it is drawn from, and KL as [credit.Estimator] has it,
//
//	loss = loss + KL · Σ k·w / denominator - Entropy · Σ H / denominator
//
// The penalty has the weights of the tokens, as in GRPO, and no correction for samples of older policies; the bonus is
// the mean over tokens, whatever their weights, as in TRL. [credit.ShapeByKL] is the other place for the penalty.
//
// Take the penalty where a reward can be gamed or other abilities must stay, the bonus where entropy falls before
// rewards have risen. Sources: GRPO (Shao et al. 2024, https://arxiv.org/abs/2402.03300), whose KL is 0.04; entropy,
// Williams and Peng 1991 and Mnih et al. 2016, https://arxiv.org/abs/1602.01783.
//
// Its metrics are those of the loss, and
//
//	loss/total          the sum of all terms, mean over optimizer steps
//	loss/kl_ref         mean k over trained tokens, nats; with KL
//	loss/entropy_full   mean H over trained tokens, nats; with Entropy
type Penalized struct {
	Loss Loss
	// KL is the strength of the penalty; 0 is none. 0.001 to 0.05 is usual; above, little is learned.
	KL float64
	// Estimator defaults to K3; credit.K2 has the gradient of KL(policy ‖ reference).
	Estimator credit.Estimator
	// Entropy is the strength of the bonus; 0 is none. 0.001 to 0.01 is usual; above, replies become noise.
	Entropy float64
}

// Validate lists every problem, those of the loss included.
func (p Penalized) Validate() error {
	errs := []error{p.Estimator.Validate()}
	for name, x := range map[string]float64{"KL": p.KL, "entropy": p.Entropy} {
		if !(finite(x) && x >= 0) {
			errs = append(errs, fmt.Errorf("grpo: %s coefficient is %v, it must be finite and not negative", name, x))
		}
	}
	return errors.Join(append(errs, validateInner("penalty", p.Loss))...)
}

// Metrics that penalties add.
var (
	totalMetric = Metric{Name: "loss/total", Reduction: MeanOverUpdates,
		Formula: "loss/policy with penalty and bonus, mean over the optimizer steps"}
	klMetric = Metric{Name: "loss/kl_ref",
		Formula: "mean estimate of KL(policy, reference) over the trained tokens", Unit: "nats",
		Healthy: "rises slowly; above 1 the penalty hardly holds"}
	entropyMetric = Metric{Name: "loss/entropy_full",
		Formula: "mean entropy of the distributions that the trained tokens are drawn from", Unit: "nats",
		Healthy: "as loss/entropy"}
)

// Spec implements [Loss].
func (p Penalized) Spec() LossSpec {
	spec := p.Loss.Spec()
	spec.Key = fmt.Sprintf("%s penalized %v %s %v", spec.Key, p.KL, cmp.Or(p.Estimator, credit.K3), p.Entropy)
	spec.Metrics = append(slices.Clone(spec.Metrics), totalMetric)
	if p.KL != 0 {
		spec.Metrics, spec.Reference = append(spec.Metrics, klMetric), true
	}
	if p.Entropy != 0 {
		spec.Metrics, spec.Entropy = append(spec.Metrics, entropyMetric), true
	}
	return spec
}

// Build implements [Loss].
func (p Penalized) Build(in LossInputs) (loss *Node, metrics map[string]*Node) {
	loss, metrics = p.Loss.Build(in)
	metrics = maps.Clone(metrics)
	if p.KL != 0 {
		k := p.estimate(Sub(in.New, in.Reference)) // [N]
		loss = Add(loss, MulScalar(in.Mean(k), p.KL))
		metrics[klMetric.Name] = ReduceAllSum(Mul(k, in.Mask))
	}
	if p.Entropy != 0 {
		sum := ReduceAllSum(Mul(in.Entropy, in.Mask))
		loss = Sub(loss, MulScalar(Div(sum, in.Denominator), p.Entropy))
		metrics[entropyMetric.Name] = sum
	}
	metrics[totalMetric.Name] = loss
	return loss, metrics
}

func (p Penalized) estimate(d *Node) *Node {
	switch p.Estimator {
	case credit.K1:
		return d
	case credit.K2:
		return MulScalar(Mul(d, d), 0.5)
	default:
		return k3(Neg(d), boundedExp(Neg(d)))
	}
}
