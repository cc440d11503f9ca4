package graphx

import (
	. "github.com/gomlx/gomlx/core/graph"
)

// plainRows is how many rows the Go device's product in plain Go computes at a time. It adds up those behind the last
// such group in another order.
const plainRows = 3

// padRows appends zeros to x [..., M, K] until M is a multiple of rowStep.
func padRows(x *Node) *Node {
	missing := -x.Shape().Dim(-2) % rowStep
	if missing == 0 {
		return x
	}
	zeros := x.Shape().Clone()
	zeros.Dimensions[x.Rank()-2] = missing + rowStep
	return Concatenate([]*Node{x, Zeros(x.Graph(), zeros)}, -2)
}

// firstRows takes the first m rows of x [..., M, N].
func firstRows(x *Node, m int) *Node {
	if x.Shape().Dim(-2) == m {
		return x
	}
	return SliceAxis(x, -2, AxisRange(0, m))
}
