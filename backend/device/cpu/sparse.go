package cpu

import (
	"github.com/gomlx/compute/dtypes"

	"github.com/goart-dev/art/backend/device/cpu/internal/gemm"
)

// sparse is a product over the rows of what a chain with a mask made, such as those of the gradients of keys and values. For
// some columns at once, it leaves out the rows in which they are all zero: those of a causal mask are half of them. It goes
// through the fixed blocks of the contracted axis, and multiplies from the first to the last row of each that is not zero. As
// in a chain, that changes no bit.
type sparse struct {
	dot
	right bool // the operand of zeros is the right one
}

const sparseColumns = 64 // that are looked at together

// sparsify makes products sparse, when the chains are there.
func (c *compiler) sparsify() {
	for _, u := range c.units {
		d, ok := u.step.(dot)
		if !ok || u.into != nil || d.out.of.kind != dtypes.Float32 || d.mayBePacked() {
			continue
		}
		switch {
		case d.a.masked():
			u.step = sparse{d, false}
		case d.b.masked():
			u.step = sparse{d, true}
		}
	}
}

// mayBePacked reports whether the right operand is a matrix that callers may pack: sparse reads rows of it where they lie.
func (d *dot) mayBePacked() bool { return d.b.v.of.place == inInput && len(d.b.v.of.matrix) == 2 }

// masked reports whether an operand is what a chain with a mask made, and the contracted axis goes through its rows.
func (s *side) masked() bool {
	w := s.v.of.writer
	if w == nil || s.row != 1 {
		return false
	}
	k := w.root().chain
	return k != nil && k.mask != nil && s.inner == k.width
}

// of is the operand of zeros.
func (s sparse) of() side {
	if s.right {
		return s.b
	}
	return s.a
}

func (s sparse) run(r *run) {
	n := s.of().rows
	blocks := ceil(n, sparseColumns)
	r.device.pool.For(s.members()*blocks, func(i int) {
		at := i % blocks * sparseColumns
		s.compute(r, i/blocks, at, min(sparseColumns, n-at))
	})
}

// compute computes what n columns of zeros from one on make, for a member of the batch.
func (s sparse) compute(r *run, member, at, n int) {
	i, j := s.offsets(member)
	a, b := from[float32](r, s.a.v)[i:], from[float32](r, s.b.v)[j:]
	rows, columns := s.a.rows, s.b.rows
	first := member * rows * columns
	var zeros []float32
	if s.right {
		b, first, columns = b[at:], first+at, n
		zeros = b
	} else {
		a, first, rows = a[at:], first+at*columns, n
		zeros = a
	}
	c := list[float32](r.ptr(s.out, first), s.out.of.count-first)
	add := false
	for from, to := s.next(zeros, n, 0); from < s.inner; from, to = s.next(zeros, n, to) {
		left := gemm.View{Data: a[from*s.a.inner:], Row: s.a.row, Col: s.a.inner}
		right := gemm.View{Data: b[from*s.b.inner:], Row: s.b.inner, Col: s.b.row}
		s.kernels.Mul(nil, c, s.b.rows, left, right, rows, columns, to-from, add)
		add = true
	}
	if !add {
		for i := range rows {
			clear(c[i*s.b.rows:][:columns])
		}
	}
}

// next returns the next rows of a block, from one on, that are not zero in n columns.
func (s sparse) next(zeros []float32, n, row int) (from, to int) {
	step := s.of().inner
	zero := func(i int) bool { return lastNumber(zeros[i*step:][:n], 0) == 0 }
	for row < s.inner && zero(row) {
		row++
	}
	to = min(s.inner, (row/gemm.Block+1)*gemm.Block)
	for to > row && zero(to-1) {
		to--
	}
	return row, to
}
