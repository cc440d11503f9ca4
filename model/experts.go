package model

import (
	"fmt"

	. "github.com/gomlx/gomlx/core/graph"
)

// Shape legend: see forward.go; X experts.

// experts is a mixture of experts (Shazeer et al. 2017): with p the softmax over a router's logits, and C the k experts
// with the largest p,
//
//	sum over e in C of w[e] mlp_e(x)      w = p, or p / sum over C of p
//
// All experts are computed for all tokens, one after another, and those not chosen have weight 0. So shapes do not
// depend on the choice, nor does the result of a token on the others in the batch; it costs X/k times the matmuls
// needed.
func (f *Forward) experts(d *design, x *Node, p string) *Node {
	all := softmax(f.linear(x, p+"gate", false)) // [B, T, X]
	weights := Where(largest(all, f.Config.ExpertsPerToken), all, ZerosLike(all))
	if f.Config.NormTopKProb {
		weights = Div(weights, ReduceAndKeep(weights, ReduceSum, -1))
	}
	var sum *Node
	for e := range f.Config.NumExperts {
		y := f.mlp(d, x, expertName(p, e))
		sum = plus(sum, Mul(y, Slice(weights, AxisRange(), AxisRange(), AxisRange(e, e+1))))
	}
	return sum
}

// largest builds a mask of the n largest elements, none negative, along the last axis of x: of equal ones the first.
func largest(x *Node, n int) *Node {
	dims := x.Shape().Dimensions
	index := Iota(x.Graph(), shapeI32(dims...), -1)
	var chosen *Node
	rest := StopGradient(x)
	for range n {
		best := Equal(index, BroadcastToDims(ExpandAxes(ArgMax(rest, -1), -1), dims...))
		rest = Where(best, MulScalar(OnesLike(rest), -1), rest)
		if chosen != nil {
			best = LogicalOr(chosen, best)
		}
		chosen = best
	}
	return chosen
}

func expertName(p string, e int) string { return fmt.Sprintf("%sexperts.%d.", p, e) }
