package model

import (
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	. "github.com/gomlx/gomlx/core/graph"

	. "github.com/goart-dev/art/internal/graphx"
)

// Shape legend: N tokens, k choices of each, X matrices [O, D] of experts, M = N k rows; Q blocks of b rows.

// grouped is the product of rows x [N, k, D] with matrices of their own out of w [X, O, D], those of ids [N, k], int32:
//
//	y[n, i] = w[ids[n, i]] x[n, i]
//
// Matrices that no row has are not multiplied, and what other rows have does not change the product of one. The
// gradient of w is that of the rows that a matrix has:
//
//	dx[n, i] = w[ids[n, i]]ᵀ dy[n, i]        dw[e] = sum over ids[n, i] = e of dy[n, i] x[n, i]ᵀ
func grouped(x *Node, w matrix, ids *Node) *Node {
	x.AssertRank(3)
	w.w.AssertRank(3)
	ids.AssertDims(x.Shape().Dim(0), x.Shape().Dim(1))
	var r rowsByMatrix = gatheredRows{w, ids}
	if !ProfileOf(x.Graph().Backend()).GathersMatrices {
		r = newBlocks(w, ids)
	}
	return groupedBy(r, x, w)
}

func groupedBy(r rowsByMatrix, x *Node, w matrix) *Node {
	in := []*Node{x}
	trained := w.w.DType() == x.DType() // matrices of other types are frozen
	if trained {
		in = append(in, w.w)
	}
	return withGradients(in, func() *Node { return r.product(x, 1) }, func(dy *Node) []*Node {
		list := []*Node{r.product(dy, 0)}
		if trained {
			list = append(list, r.outer(dy, x))
		}
		return list
	})
}

// rowsByMatrix are the rows that each of some matrices has.
type rowsByMatrix interface {
	// product contracts rows [N, k, O or D] with axis 0 or 1 of their matrices.
	product(x *Node, axis int) *Node
	// outer sums dy xᵀ for each matrix: [X, O, D].
	outer(dy, x *Node) *Node
}

// stacked is matrices [O, D] as one [X, O, D]. A device that multiplies gathered matrices reads them where they are.
func stacked(list []matrix) matrix {
	join := func(of func(m matrix) *Node) *Node {
		all := make([]*Node, len(list))
		for i, m := range list {
			all[i] = ExpandAxes(of(m), 0)
		}
		return Concatenate(all, 0)
	}
	m := matrix{w: join(func(m matrix) *Node { return upcast(m.w) })}
	if list[0].scale != nil {
		m.scale = join(func(m matrix) *Node { return m.scale })
	}
	return m
}

// gatheredRows is for devices that multiply gathered matrices without gathering them: the CPU device knows these
// operations, and makes one of them.
type gatheredRows struct {
	w   matrix
	ids *Node
}

var ofRows = []int{0, 1} // the axes of N and k

func (r gatheredRows) product(x *Node, axis int) *Node {
	return DotGeneral(x, []int{2}, ofRows, Gather(r.w.w, ExpandAxes(r.ids, -1)), []int{2 + axis}, ofRows)
}

func (r gatheredRows) outer(dy, x *Node) *Node {
	return Scatter(ExpandAxes(r.ids, -1), DotGeneral(dy, nil, ofRows, x, nil, ofRows), r.w.w.Shape(), false, false)
}

// blocks is for other devices. Rows are sorted by their matrices into blocks of b, each of one matrix, whose last ones
// are filled up with zeros. So the matmuls have shapes that do not depend on the choice, and there are about M/b + X of
// them. The matrices of some blocks are gathered at a time.
type blocks struct {
	w     matrix
	shape []int // [N, k]
	size  int   // b
	slot  *Node // [M, 1] of each row, in Q b
	which *Node // [Q, 1] matrix of each block
}

const (
	mostBlockRows  = 128
	blockMatrices  = 1 << 26 // numbers that are gathered at once, if there are no more parts than
	mostBlockParts = 16
)

func newBlocks(w matrix, ids *Node) blocks {
	g, rows, matrices := ids.Graph(), ids.Shape().Size(), w.w.Shape().Dim(0)
	r := blocks{w: w, shape: ids.Shape().Dimensions, size: 1}
	for r.size < mostBlockRows && 4*r.size*matrices <= rows { // zeros are a quarter of all, at most
		r.size *= 2
	}
	count := (rows + min(rows, matrices)*(r.size-1)) / r.size
	ids = Reshape(ids, rows, 1)
	has := ConvertDType(Equal(ids, Iota(g, shapeI32(1, matrices), 1)), dtypes.Int32) // [M, X]
	each := ReduceSum(has, 0)                                                        // [X] rows
	ends := CumSum(DivScalar(AddScalar(each, r.size-1), r.size), 0)                  // [X] of their blocks
	first := Sub(ends, DivScalar(AddScalar(each, r.size-1), r.size))
	// A row comes behind the ones before it of its matrix.
	at := Add(AddScalar(CumSum(has, 0), -1), MulScalar(ExpandAxes(first, 0), r.size))
	r.slot = ReduceAndKeep(Mul(has, at), ReduceSum, -1)
	before := LessOrEqual(ExpandAxes(ends, 0), Iota(g, shapeI32(count, 1), 0)) // [Q, X] matrices whose blocks end before
	r.which = MinScalar(ReduceAndKeep(ConvertDType(before, dtypes.Int32), ReduceSum, -1), matrices-1)
	return r
}

// sorted builds rows [N, k, D] in their blocks: [Q, b, D].
func (r blocks) sorted(x *Node) *Node {
	count, width := r.which.Shape().Dim(0), x.Shape().Dim(-1)
	to := shapes.Make(x.DType(), count*r.size, width)
	return Reshape(Scatter(r.slot, Reshape(x, -1, width), to, false, true), count, r.size, width)
}

// parts calls f for some blocks at a time, and for their matrices.
func (r blocks) parts(f func(of span, which *Node)) {
	dims := r.w.w.Shape().Dimensions
	count := r.which.Shape().Dim(0)
	most := max(1, blockMatrices/(dims[1]*dims[2]), (count+mostBlockParts-1)/mostBlockParts)
	for _, s := range spans(count, most) {
		f(s, Slice(r.which, AxisRange(s.from, s.to)))
	}
}

func (r blocks) product(x *Node, axis int) *Node {
	x = r.sorted(x)
	var list []*Node
	r.parts(func(of span, which *Node) {
		m := matrix{w: Gather(r.w.w, which)}
		if r.w.scale != nil {
			m.scale = Gather(r.w.scale, which)
		}
		list = append(list, m.batchMatMul(of.batchOf(x), axis))
	})
	y := Concatenate(list, 0)
	width := y.Shape().Dim(-1)
	return Reshape(Gather(Reshape(y, -1, width), r.slot), r.shape[0], r.shape[1], width)
}

func (r blocks) outer(dy, x *Node) *Node {
	dy, x = r.sorted(dy), r.sorted(x)
	var sum *Node
	r.parts(func(of span, which *Node) {
		y := DotGeneral(of.batchOf(dy), []int{1}, []int{0}, of.batchOf(x), []int{1}, []int{0})
		sum = plus(sum, Scatter(which, y, shapes.Make(x.DType(), r.w.w.Shape().Dimensions...), false, false))
	})
	return sum
}

// batchMatMul contracts x [Q, b, O or D] with axis 0 or 1 of matrices [Q, O, D], as [matrix.bfloat16MatMul] does.
func (m matrix) batchMatMul(x *Node, axis int) *Node {
	if m.scale != nil && axis == 0 {
		x = Mul(x, ExpandAxes(m.scale, 1))
	}
	w := m.w
	if w.DType() == dtypes.Int8 {
		w = ConvertDType(w, dtypes.BFloat16)
	}
	y := dotOf(x, w).General([]int{2}, []int{0}, []int{1 + axis}, []int{0})
	if m.scale != nil && axis == 1 {
		y = Mul(y, ExpandAxes(m.scale, 1))
	}
	return y
}
