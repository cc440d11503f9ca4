package grpo

// Shapes: N trained tokens of a micro-batch, padded. [] is a scalar.

import (
	"fmt"

	. "github.com/gomlx/gomlx/core/graph"

	"github.com/goart-dev/art/grpo/credit"
)

// Spec implements [Loss].
func (l PolicyLoss) Spec() LossSpec {
	l = l.withDefaults()
	lo, hi := credit.Policy(l).Bounds()
	spec := LossSpec{
		Key: fmt.Sprintf("policy %s %v %v %s %v %t %v %v", l.Loss, lo, hi, l.Level, l.DualClip, l.MaskRatio, l.KimiTau,
			l.DROBeta),
		Sampled: true,
	}
	for _, m := range policyMetrics {
		if m.Name != clippedFraction || credit.Policy(l).Bounded() {
			spec.Metrics = append(spec.Metrics, m)
		}
	}
	return spec
}

// clippedFraction is the metric that losses without bounds do not have.
const clippedFraction = "loss/clipped_fraction"

// policyMetrics are the metrics of a policy loss.
var policyMetrics = []Metric{
	{Name: "loss/policy", Reduction: MeanOverUpdates, Formula: "the loss, mean over the optimizer steps",
		Healthy: "near 0; that it falls says nothing"},
	{Name: "loss/entropy", Formula: "mean of -logprob over the trained tokens: an estimate of the entropy", Unit: "nats",
		Healthy: "falls slowly; near 0 nothing is explored any more"},
	{Name: "loss/kl_old_new", Formula: "mean of exp(d) - 1 - d, d the log-ratio: an estimate of KL(old, new)",
		Unit:    "nats",
		Healthy: "below 0.05"},
	{Name: clippedFraction, Formula: "trained tokens whose importance ratio lies outside of the bounds",
		Healthy: "below 0.2"},
	{Name: "loss/log_ratio_mean", Formula: "mean of |d|, d = log(new / old probability), over updates and tokens",
		Unit:    "nats",
		Healthy: "below 0.1"},
	{Name: "loss/log_ratio_max", Reduction: Maximum, Formula: "maximum of |d|", Unit: "nats"},
}

// metrics builds the metrics, each []. logRatio and ratio are [N]; for padding they are 0 and 1.
func (l PolicyLoss) metrics(loss *Node, in LossInputs, logRatio, ratio *Node) map[string]*Node {
	distance, ofToken := Abs(logRatio), ratio
	if l.Level != credit.LevelToken {
		ofToken = boundedExp(logRatio)
	}
	out := map[string]*Node{
		"loss/policy":         loss,
		"loss/entropy":        ReduceAllSum(Neg(in.New)),
		"loss/kl_old_new":     ReduceAllSum(k3(logRatio, ofToken)),
		"loss/log_ratio_mean": ReduceAllSum(distance),
		"loss/log_ratio_max":  ReduceAllMax(distance),
	}
	if credit.Policy(l).Bounded() {
		out[clippedFraction] = ReduceAllSum(ConvertDType(l.outside(ratio), ratio.DType()))
	}
	return out
}

// k3 builds exp(d) - 1 - d [N] from d and r = exp(d); for small d by its series, because the difference would cancel:
// at d = 1e-4 it is 5e-9, a tenth of the rounding of 1.
//
// Source: J. Schulman, Approximating KL Divergence, 2020, http://joschu.net/blog/kl-approx.html.
func k3(d, r *Node) *Node {
	series := Mul(Mul(d, d), AddScalar(Mul(d, AddScalar(Mul(d, AddScalar(MulScalar(d, 1.0/120), 1.0/24)), 1.0/6)), 1.0/2))
	exact := Sub(MinusOne(r), d)
	return Where(LessThan(Abs(d), Scalar(d.Graph(), d.DType(), 0.1)), series, exact)
}
