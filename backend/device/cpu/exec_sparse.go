package cpu

import "github.com/goart-dev/art/backend/device/cpu/internal/gemm"

// sparseColumns are looked at together.
const sparseColumns = 64

// sparseMatmul multiplies without the rows that are zero.
func (r *run) sparseMatmul(s *sparseMatmul) {
	n := s.zeros().rows
	blocks := ceilDiv(n, sparseColumns)
	r.pool.For(s.matmul.members()*blocks, func(i int) {
		at := i % blocks * sparseColumns
		r.sparsePart(s, i/blocks, at, min(sparseColumns, n-at))
	})
}

// sparsePart computes what n columns of zeros from one on make, for a member of the batch.
func (r *run) sparsePart(s *sparseMatmul, member, at, n int) {
	m := s.matmul
	i, j := m.offsets(member)
	a, b := from[float32](r, m.a.v)[i:], from[float32](r, m.b.v)[j:]
	rows, columns := m.a.rows, m.b.rows
	first := member * rows * columns
	var zeros []float32
	if s.right {
		b, first, columns = b[at:], first+at, n
		zeros = b
	} else {
		a, first, rows = a[at:], first+at*columns, n
		zeros = a
	}
	c := gemm.Out{Data: list[float32](r.ptr(m.out, first), m.out.of.count-first), Row: m.b.rows}
	add := false
	for from, to := nextRows(s, zeros, n, 0); from < m.inner; from, to = nextRows(s, zeros, n, to) {
		left := gemm.View{Data: a[from*m.a.inner:], Row: m.a.row, Col: m.a.inner}
		right := gemm.View{Data: b[from*m.b.inner:], Row: m.b.inner, Col: m.b.row}
		r.kernels.Mul(nil, gemm.Matmul{C: c, A: left, B: right, M: rows, N: columns, K: to - from, Add: add})
		add = true
	}
	if !add {
		for i := range rows {
			clear(c.Data[i*c.Row:][:columns])
		}
	}
}

// nextRows returns the next rows of a block, from one on, that are not zero in n columns.
func nextRows(s *sparseMatmul, zeros []float32, n, row int) (from, to int) {
	step, inner := s.zeros().inner, s.matmul.inner
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
