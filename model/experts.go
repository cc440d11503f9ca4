package model

import (
	"strconv"

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
type experts struct {
	router     linear
	count, top int    // X and k
	normalized bool   // w adds up to 1
	name       string // what precedes an expert's number: "mlp.experts."
	expert     mlp    // its names follow the number; in a GGUF file one tensor has those of all
}

func (m experts) build(f *Forward, x *Node, at string) *Node {
	all := softmax(m.router.build(f, x, at)) // [B, T, X]
	weights := Where(largest(all, m.top), all, ZerosLike(all))
	if m.normalized {
		weights = Div(weights, ReduceAndKeep(weights, ReduceSum, -1))
	}
	var sum *Node
	for e := range m.count {
		y := m.expert.build(f, x, m.prefix(at, e))
		sum = plus(sum, Mul(y, columns(weights, e, 1)))
	}
	return sum
}

func (m experts) list(l *tensorList, at place) {
	l.linear(at, m.router)
	for e := range m.count {
		first := len(*l)
		m.expert.list(l, place{m.prefix(at.name, e), at.file})
		for i := range (*l)[first:] {
			(*l)[first+i].merged = true
		}
	}
}

func (m experts) prefix(at string, e int) string { return at + m.name + strconv.Itoa(e) + "." }

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
