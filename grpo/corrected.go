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

// correction returns the correction with its defaults.
func (c Corrected) correction() credit.Correction {
	c.Method = cmp.Or(c.Method, credit.CorrectTruncate)
	return c.Correction.WithDefaults()
}

// correctedMetrics are those that a correction adds.
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
