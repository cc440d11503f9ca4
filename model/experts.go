package model

import (
	"math"
	"strconv"

	. "github.com/gomlx/gomlx/core/graph"
)

// Shape legend: see forward.go; X experts, of which each of N = B T tokens has k.

// experts is a mixture of experts (Shazeer et al. 2017): with p the softmax over a router's logits, and C the k experts
// with the largest p,
//
//	sum over e in C of w[e] mlp_e(x)      w = p, or p / sum over C of p
//
// Only the experts of C are computed. They are added up in the order of their p, the largest first.
type experts struct {
	router     linear
	count, top int    // X and k
	normalized bool   // w adds up to 1
	name       string // what precedes an expert's number: "mlp.experts."
	expert     mlp    // its names follow the number; in a GGUF file one tensor has those of all
}

func (m experts) build(f *Forward, x *Node, at string) *Node {
	dims, k := x.Shape().Dimensions, m.top
	n := dims[0] * dims[1]
	all := Reshape(softmax(m.router.build(f, x, at)), n, -1) // [N, X]
	ids := largest(all, k)
	weights := chosen(all, ids)
	if m.normalized {
		weights = Div(weights, ReduceAndKeep(weights, ReduceSum, -1))
	}
	layer := func(x *Node, l linear) *Node {
		list := make([]matrix, m.count)
		for e := range list {
			list[e] = f.matrix(m.prefix(at, e) + l.name + weightSuffix)
		}
		return grouped(x, stacked(list), ids)
	}
	e := m.expert
	x = BroadcastToDims(Reshape(x, n, 1, -1), n, k, dims[2])
	y := layer(gated(activations[e.activation], layer(x, e.gate), layer(x, e.up)), e.down)
	return Reshape(DotGeneral(weights, []int{1}, []int{0}, y, []int{1}, []int{0}), dims...)
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

// largest builds the indices of the k largest elements of the rows of x [N, X], the largest first, and of equal ones
// the first: [N, k].
func largest(x *Node, k int) *Node {
	rest, list := StopGradient(x), make([]*Node, k)
	for i := range list {
		list[i] = ExpandAxes(ArgMax(rest, -1), -1)
		rest = Where(isAt(x, list[i]), Scalar(x.Graph(), x.DType(), math.Inf(-1)), rest)
	}
	return Concatenate(list, -1)
}

// chosen builds the elements of the rows of x [N, X] with indices [N, k].
func chosen(x, ids *Node) *Node {
	list := make([]*Node, ids.Shape().Dim(1))
	for i := range list {
		at := isAt(x, Slice(ids, AxisRange(), AxisElem(i)))
		list[i] = ReduceAndKeep(Where(at, x, ZerosLike(x)), ReduceSum, -1)
	}
	return Concatenate(list, -1)
}

// isAt builds which element of the rows of x [N, X] has an index [N, 1].
func isAt(x, index *Node) *Node {
	dims := x.Shape().Dimensions
	return Equal(Iota(x.Graph(), shapeI32(dims...), -1), BroadcastToDims(index, dims...))
}
