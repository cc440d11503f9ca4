package grpo

// Shapes: N trained tokens of a micro-batch, padded. [] is a scalar.

import (
	"github.com/gomlx/compute/dtypes"
	. "github.com/gomlx/gomlx/core/graph"
)

// LossMetrics are scalars about a micro-batch. All but GapMax are sums over its trained tokens and add up over
// micro-batches, see [LossSums]. No gradient flows through them.
type LossMetrics struct {
	Loss    *Node // [] the loss itself, denominator included
	Clipped *Node // [] tokens whose ratio lies outside of the bounds
	GapSum  *Node // [] Σ |new - old|
	GapMax  *Node // [] max |new - old|
	KL      *Node // [] Σ exp(d) - 1 - d, d = new - old: the k3 estimate of KL(old ‖ new), never negative
	Entropy *Node // [] Σ -new: an estimate of the entropy of the policy while it is close to the one that sampled
	Tokens  *Node // [] trained tokens
}

// Nodes returns the metrics in the order of the fields, which is that of [ReadLossSums].
func (m LossMetrics) Nodes() []*Node {
	return []*Node{m.Loss, m.Clipped, m.GapSum, m.GapMax, m.KL, m.Entropy, m.Tokens}
}

// Vector builds one [NumLossSums] vector of the metrics: one transfer from the device instead of seven.
func (m LossMetrics) Vector() *Node { return Stack(m.Nodes(), 0) }

// lossMetrics builds the metrics. All inputs but loss are [N]; real is boolean.
func lossMetrics(loss *Node, in LossInputs, logRatio, ratio, real *Node, lo, hi float64) LossMetrics {
	d, r, g := StopGradient(logRatio), StopGradient(ratio), loss.Graph()
	outside := LogicalOr(
		LessThan(r, Scalar(g, r.DType(), lo)),
		GreaterThan(r, Scalar(g, r.DType(), hi)))
	return LossMetrics{
		Loss:    StopGradient(loss),
		Clipped: count(outside, r.DType()), // the ratio of padding is 1, which is never outside
		GapSum:  ReduceAllSum(Abs(d)),
		GapMax:  ReduceAllMax(Abs(d)),
		KL:      ReduceAllSum(k3(d, r)),
		Entropy: ReduceAllSum(Neg(StopGradient(in.New))),
		Tokens:  count(real, r.DType()),
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

// count builds the number of true elements of x [N].
func count(x *Node, dtype dtypes.DType) *Node { return ReduceAllSum(ConvertDType(x, dtype)) }
