package cpu

import (
	"math"

	"github.com/gomlx/compute/dtypes"

	"github.com/goart-dev/art/backend/device/cpu/internal/gemm"
	"github.com/goart-dev/art/backend/device/cpu/internal/pool"
	"github.com/goart-dev/art/backend/device/cpu/internal/vec"
)

// from returns the elements of a tensor from the first one of a view on.
func from[T any](r *run, v view) []T { return list[T](r.ptr(v, v.off), v.of.count-v.off) }

// matmul multiplies matrices.
func (r *run) matmul(m *matmul) {
	if m.out.of.kind == dtypes.Float64 {
		r.double(m)
		return
	}
	c := gemm.Out{Data: list[float32](r.ptr(m.out, 0), m.out.of.count), Row: m.b.rows}
	a := gemm.View{Data: from[float32](r, m.a.v), Row: m.a.row, Col: m.a.inner}
	if r.readsWhole(m) {
		r.multiplyWhole(m, r.pool, c, a, m.a.rows)
		return
	}
	b := gemm.View{Data: from[float32](r, m.b.v), Row: m.b.inner, Col: m.b.row}
	r.kernels.MulBatch(r.pool, m.batch, gemm.Matmul{C: c, A: a, B: b, M: m.a.rows, N: m.b.rows, K: m.inner})
}

// readsWhole reports whether the right operand is one matrix, packed or of bfloat16.
func (r *run) readsWhole(m *matmul) bool { return m.bf16 || r.packed[m.b.v.of.id] != nil }

// multiplyWhole multiplies rows of a by such an operand.
func (r *run) multiplyWhole(m *matmul, workers *pool.Pool, c gemm.Out, a gemm.View, rows int) {
	w := r.packed[m.b.v.of.id]
	switch {
	case w == nil:
		r.multiplyBF16(m, workers, c, a, rows)
	case m.b.inner == 1:
		r.kernels.MulPacked(workers, c, a, w, rows, false)
	default:
		r.kernels.MulPackedT(workers, c, a, w, rows, false)
	}
}

// A matrix that is stored in bfloat16 and converted to float32, of which rows are gathered or which is the right operand of a
// matmul, is not converted as a whole: matmuls widen its numbers while they stream them. That reads half of the bytes, and
// widening is exact, so the bits are those of converting first.

// widenedElements is how much of a matrix of bfloat16, in row-major order, is widened at once for a matmul.
const widenedElements = 1 << 10 * gemm.Block

// multiplyBF16 multiplies a, of so many rows, by a matrix of bfloat16 in row-major order, part of which is widened at once.
func (r *run) multiplyBF16(m *matmul, workers *pool.Pool, c gemm.Out, a gemm.View, n int) {
	rows, columns := m.b.v.of.dims[0], m.b.v.of.dims[1]
	high, width := min(rows, max(1, widenedElements/max(columns, 1))), columns
	if m.contractsRows { // whole fixed blocks of the contracted axis, or the sums would be other ones
		width = min(columns, widenedElements/gemm.Block)
		high = min(rows, widenedElements/max(width, 1)/gemm.Block*gemm.Block)
	}
	space := r.memory.alloc(4 * high * width)
	defer r.memory.release(space)
	for at := 0; at < rows; at += high {
		for j := 0; j < columns; j += width {
			p := widenedPart{row: at, column: j, rows: min(high, rows-at), columns: min(width, columns-j)}
			b := r.widen(m, p, list[float32](space.base, p.rows*p.columns))
			part := gemm.Matmul{C: c, A: a, M: n}
			if m.contractsRows {
				part.C, part.N, part.K, part.Add = c.From(j), p.columns, p.rows, at > 0
				part.A.Data, part.B = a.Data[at*a.Col:], gemm.View{Data: b, Row: p.columns, Col: 1}
			} else {
				part.C, part.N, part.K = c.From(at), p.rows, columns
				part.B = gemm.View{Data: b, Row: 1, Col: columns}
			}
			r.kernels.Mul(workers, part)
		}
	}
}

// widenedPart is a part of a matrix of bfloat16.
type widenedPart struct{ row, column, rows, columns int }

// widen widens a part of the right operand to dst, which it returns.
func (r *run) widen(m *matmul, p widenedPart, dst []float32) []float32 {
	columns := m.b.v.of.dims[1]
	if p.columns == columns {
		vec.FromBfloat16(r.level, dst, list[uint16](r.ptr(m.b.v, p.row*columns), len(dst)))
		return dst
	}
	for i := range p.rows {
		src := list[uint16](r.ptr(m.b.v, (p.row+i)*columns+p.column), p.columns)
		vec.FromBfloat16(r.level, dst[i*p.columns:][:p.columns], src)
	}
	return dst
}

// double multiplies in double precision, for tests.
func (r *run) double(m *matmul) {
	n := m.a.rows * m.b.rows
	if n == 0 {
		return
	}
	r.pool.For(m.out.of.count/n, func(i int) {
		out := list[float64](r.ptr(m.out, i*n), n)
		i, j := m.offsets(i)
		a, b := from[float64](r, m.a.v)[i:], from[float64](r, m.b.v)[j:]
		for j := range out {
			x, y := j/m.b.rows*m.a.row, j%m.b.rows*m.b.row
			out[j] = 0
			for k := range m.inner {
				out[j] = math.FMA(a[x+k*m.a.inner], b[y+k*m.b.inner], out[j])
			}
		}
	})
}
