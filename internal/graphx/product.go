package graphx

import (
	. "github.com/gomlx/gomlx/core/graph"
)

// panel is the length of contraction that the Go device computes as one chain of fused multiply-adds whatever else the
// shape is. A longer one is such a chain in a small product and a sum over panels in a large one.
const panel = 128

// Lanes is the width of a vector. Columns behind the last full vector of a product are computed in plain Go, without
// fused multiply-add; so is every product of no more columns than that. Products that must not depend on their shape
// have a multiple of it, and at least two.
const Lanes = 16

// Product builds x [..., K] times w [..., K, N] with equal leading axes, as
//
//	x[:128] w[:128] + x[128:256] w[128:256] + ...
//
// so that a row of the result has the same bits whatever the number of rows, on the Go device too.
func Product(x, w *Node) *Node {
	return firstRows(panels(padRows(x), w), x.Shape().Dim(-2))
}

func panels(x, w *Node) *Node {
	last := x.Rank() - 1
	batch := make([]int, last-1)
	for i := range batch {
		batch[i] = i
	}
	dot := func(x, w *Node) *Node { return DotGeneral(x, []int{last}, batch, w, []int{last - 1}, batch) }
	k := x.Shape().Dim(-1)
	if k <= panel {
		return dot(x, w)
	}
	var sum *Node
	for from := 0; from < k; from += panel {
		part := AxisRange(from, min(from+panel, k))
		y := dot(SliceAxis(x, -1, part), SliceAxis(w, -2, part))
		if sum == nil {
			sum = y
		} else {
			sum = Add(sum, y)
		}
	}
	return sum
}
