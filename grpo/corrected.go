package grpo

// Shapes: N trained tokens of a micro-batch, padded. [] is a scalar.

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"

	. "github.com/gomlx/gomlx/core/graph"
)

// Correction says what is done with importance weights against the distribution that was sampled from.
type Correction string

// Corrections.
const (
	// Truncate brings weights into [Low, High] (truncated importance sampling, TIS: Yao et al. 2025,
	// https://fengyao.notion.site/off-policy-rl): every token counts, and none too much. The default.
	Truncate Correction = "truncate"
	// Mask leaves out tokens whose weight is below Low or above High (IcePop: Ling team 2025,
	// https://arxiv.org/abs/2510.18855): what sampler and trainer disagree about is noise.
	Mask Correction = "mask"
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
	Loss   Loss
	Method Correction // default Truncate
	// Low and High bound r. Defaults: 0 and 2 for Truncate, 0.5 and 5 for Mask, as in their sources. Closer to 1 is less
	// noise and more bias.
	Low, High float64
	// Sequence takes the product of r over the trained tokens of a sequence (verl's sequence level): unbiased where
	// Truncate does not cut, and of a variance that grows with the length. For short replies.
	Sequence bool
	FromOld  bool
}

// Validate lists every problem, those of the loss included.
func (c Corrected) Validate() error {
	var errs []error
	if c.Method != "" && c.Method != Truncate && c.Method != Mask {
		errs = append(errs, fmt.Errorf("grpo: unknown correction %q, use %q or %q", c.Method, Truncate, Mask))
	}
	if lo, hi := c.Bounds(); !(finite(lo) && finite(hi) && lo >= 0 && lo < hi) {
		errs = append(errs, fmt.Errorf("grpo: correction between %v and %v, want 0 <= low < high", lo, hi))
	}
	return errors.Join(append(errs, validateInner("correction", c.Loss))...)
}

// Bounds returns the range of the weights.
func (c Corrected) Bounds() (lo, hi float64) {
	if c.Method == Mask {
		return cmp.Or(c.Low, 0.5), cmp.Or(c.High, 5)
	}
	return c.Low, cmp.Or(c.High, 2)
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
	lo, hi := c.Bounds()
	spec.Key = fmt.Sprintf("%s corrected %s %v %v %t %t", spec.Key, cmp.Or(c.Method, Truncate), lo, hi, c.Sequence,
		c.FromOld)
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
	lo, hi := c.Bounds()
	g, dtype := ratio.Graph(), ratio.DType()
	outside := LogicalOr(LessThan(ratio, Scalar(g, dtype, lo)), GreaterThan(ratio, Scalar(g, dtype, hi)))
	weight := ClipScalar(ratio, lo, hi)
	if c.Method == Mask {
		weight = Where(outside, ZerosLike(ratio), ratio)
	}
	in.Weight = Mul(in.Weight, weight)
	loss, metrics = c.Loss.Build(in)
	metrics = maps.Clone(metrics)
	metrics["loss/correction_mean"] = ReduceAllSum(Mul(ratio, in.Mask))
	metrics["loss/corrected_fraction"] = ReduceAllSum(Mul(ConvertDType(outside, dtype), in.Mask))
	return loss, metrics
}
