package exec

import (
	"github.com/goart-dev/art/backend/device/cpu/internal/gemm"

	"github.com/goart-dev/art/backend/device/cpu/internal/ir"
	"github.com/goart-dev/art/backend/device/cpu/internal/memory"
)

// sparseColumns are looked at together.
const sparseColumns = 64

// ir.SparseMatmul multiplies without the rows that are zero.
func (r *run) sparseMatmul(s *ir.SparseMatmul) {
	n := s.Zeros().Rows
	blocks := ir.CeilDiv(n, sparseColumns)
	r.Pool.For(s.Matmul.Members()*blocks, func(i int) {
		at := i % blocks * sparseColumns
		r.sparsePart(s, i/blocks, at, min(sparseColumns, n-at))
	})
}

// sparsePart computes what n columns of zeros from one on make, for a member of the batch.
func (r *run) sparsePart(s *ir.SparseMatmul, member, at, n int) {
	m := s.Matmul
	i, j := m.Offsets(member)
	a, b := from[float32](r, m.A.View)[i:], from[float32](r, m.B.View)[j:]
	rows, columns := m.A.Rows, m.B.Rows
	first := member * rows * columns
	var zeros []float32
	if s.Right {
		b, first, columns = b[at:], first+at, n
		zeros = b
	} else {
		a, first, rows = a[at:], first+at*columns, n
		zeros = a
	}
	c := gemm.Out{Data: memory.Slice[float32](r.ptr(m.Out, first), m.Out.Of.Count-first), Row: m.B.Rows}
	add := false
	for from, to := nextRows(s, zeros, n, 0); from < m.Inner; from, to = nextRows(s, zeros, n, to) {
		left := gemm.View{Data: a[from*m.A.Inner:], Row: m.A.Row, Col: m.A.Inner}
		right := gemm.View{Data: b[from*m.B.Inner:], Row: m.B.Inner, Col: m.B.Row}
		r.Kernels.Mul(nil, gemm.Matmul{C: c, A: left, B: right, M: rows, N: columns, K: to - from, Add: add})
		add = true
	}
	if !add {
		for i := range rows {
			clear(c.Data[i*c.Row:][:columns])
		}
	}
}

// nextRows returns the next rows of a block, from one on, that are not zero in n columns.
func nextRows(s *ir.SparseMatmul, zeros []float32, n, row int) (from, to int) {
	step, inner := s.Zeros().Inner, s.Matmul.Inner
	zero := func(i int) bool { return lastNumber(zeros[i*step:][:n], 0) == 0 }
	for row < inner && zero(row) {
		row++
	}
	to = min(inner, (row/gemm.Block+1)*gemm.Block)
	for to > row && zero(to-1) {
		to--
	}
	return row, to
}
