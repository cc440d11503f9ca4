package grpo

// Shapes: N trained tokens of a micro-batch, padded. [] is a scalar.

import (
	"fmt"

	. "github.com/gomlx/gomlx/core/graph"
)

// Spec implements [Loss].
func (l PolicyLoss) Spec() LossSpec {
	lo, hi := l.Bounds()
	return LossSpec{
		Key:     fmt.Sprintf("policy %s %v %v", l.kind(), lo, hi),
		Sampled: true,
		Metrics: []Metric{
			{"loss/policy", MeanOverUpdates},
			{"loss/entropy", MeanOverTokens},
			{"loss/kl_old_new", MeanOverTokens},
			{"ratio/clipped_frac", MeanOverTokens},
			{"ratio/logprob_diff_mean", MeanOverTokens},
			{"ratio/logprob_diff_max", Maximum},
		},
	}
}

// metrics builds the metrics, each []. logRatio and ratio are [N]; for padding they are 0 and 1.
func (l PolicyLoss) metrics(loss *Node, in LossInputs, logRatio, ratio *Node) map[string]*Node {
	lo, hi := l.Bounds()
	g, dtype := ratio.Graph(), ratio.DType()
	outside := LogicalOr(LessThan(ratio, Scalar(g, dtype, lo)), GreaterThan(ratio, Scalar(g, dtype, hi)))
	distance := Abs(logRatio)
	return map[string]*Node{
		"loss/policy":             loss,
		"loss/entropy":            ReduceAllSum(Neg(in.New)),
		"loss/kl_old_new":         ReduceAllSum(k3(logRatio, ratio)),
		"ratio/clipped_frac":      ReduceAllSum(ConvertDType(outside, dtype)),
		"ratio/logprob_diff_mean": ReduceAllSum(distance),
		"ratio/logprob_diff_max":  ReduceAllMax(distance),
	}
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
