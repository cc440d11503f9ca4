package graphx

import (
	. "github.com/gomlx/gomlx/core/graph"
)

// BatchMatMul builds x [..., M, K] times w [..., K, N] with equal leading axes: [..., M, N].
func BatchMatMul(x, w *Node) *Node {
	last := x.Rank() - 1
	batch := make([]int, last-1)
	for i := range batch {
		batch[i] = i
	}
	return DotGeneral(x, []int{last}, batch, w, []int{last - 1}, batch)
}

// MatMulTransposed builds x [M, K] times the transpose of w [N, K]: [M, N].
func MatMulTransposed(x, w *Node) *Node {
	return DotGeneral(x, []int{1}, nil, w, []int{1}, nil)
}
