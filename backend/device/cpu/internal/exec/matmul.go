package exec

import (
	"math"

	"github.com/gomlx/compute/dtypes"

	"github.com/goart-dev/art/backend/device/cpu/internal/gemm"
	"github.com/goart-dev/art/backend/device/cpu/internal/ir"
	"github.com/goart-dev/art/backend/device/cpu/internal/memory"
	"github.com/goart-dev/art/backend/device/cpu/internal/pool"
	"github.com/goart-dev/art/backend/device/cpu/internal/vec"
)

// from returns the elements of a tensor from the first one of a view on.
func from[T any](r *run, v ir.View) []T { return memory.Slice[T](r.ptr(v, v.Off), v.Of.Count-v.Off) }

// matmul multiplies matrices.
func (r *run) matmul(m *ir.Matmul) {
	if m.Out.Of.DType == dtypes.Float64 {
		r.double(m)
		return
	}
	c := gemm.Out{Data: memory.Slice[float32](r.ptr(m.Out, 0), m.Out.Of.Count), Row: m.B.Rows}
	a := gemm.View{Data: from[float32](r, m.A.View), Row: m.A.Row, Col: m.A.Inner}
	if r.readsWhole(m) {
		r.multiplyWhole(m, r.Pool, c, a, m.A.Rows)
		return
	}
	b := gemm.View{Data: from[float32](r, m.B.View), Row: m.B.Inner, Col: m.B.Row}
	r.Kernels.MulBatch(r.Pool, m.Batch, gemm.Matmul{C: c, A: a, B: b, M: m.A.Rows, N: m.B.Rows, K: m.Inner})
}

// readsWhole reports whether the right operand is one matrix, packed or of bfloat16.
func (r *run) readsWhole(m *ir.Matmul) bool { return m.BF16 || r.packed[m.B.View.Of.ID] != nil }

// multiplyWhole multiplies rows of a by such an operand.
func (r *run) multiplyWhole(m *ir.Matmul, workers *pool.Pool, c gemm.Out, a gemm.View, rows int) {
	w := r.packed[m.B.View.Of.ID]
	switch {
	case w == nil:
		r.multiplyBF16(m, workers, c, a, rows)
	case m.B.Inner == 1:
		r.Kernels.MulPacked(workers, c, a, w, rows, false)
	default:
		r.Kernels.MulPackedT(workers, c, a, w, rows, false)
	}
}

// A matrix that is stored in bfloat16 and converted to float32, of which rows are gathered or which is the right
// operand of a matmul, is not converted as a whole: matmuls widen its numbers while they stream them. That reads half
// of the bytes, and widening is exact, so the bits are those of converting first.

// widenedElements is how much of a matrix of bfloat16, in row-major order, is widened at once for a matmul.
const widenedElements = 1 << 10 * gemm.Block

// multiplyBF16 multiplies a, of so many rows, by a matrix of bfloat16 in row-major order, part of which is widened at
// once.
func (r *run) multiplyBF16(m *ir.Matmul, workers *pool.Pool, c gemm.Out, a gemm.View, n int) {
	rows, columns := m.B.View.Of.Dims[0], m.B.View.Of.Dims[1]
	high, width := min(rows, max(1, widenedElements/max(columns, 1))), columns
	if m.ContractsRows { // whole fixed blocks of the contracted axis, or the sums would be other ones
		width = min(columns, widenedElements/gemm.Block)
		high = min(rows, widenedElements/max(width, 1)/gemm.Block*gemm.Block)
	}
	space := r.Memory.Alloc(4 * high * width)
	defer r.Memory.Release(space)
	for at := 0; at < rows; at += high {
		for j := 0; j < columns; j += width {
			p := widenedPart{row: at, column: j, rows: min(high, rows-at), columns: min(width, columns-j)}
			b := r.widen(m, p, memory.Slice[float32](space.Base, p.rows*p.columns))
			part := gemm.Matmul{C: c, A: a, M: n}
			if m.ContractsRows {
				part.C, part.N, part.K, part.Add = c.From(j), p.columns, p.rows, at > 0
				part.A.Data, part.B = a.Data[at*a.Col:], gemm.View{Data: b, Row: p.columns, Col: 1}
			} else {
				part.C, part.N, part.K = c.From(at), p.rows, columns
				part.B = gemm.View{Data: b, Row: 1, Col: columns}
			}
			r.Kernels.Mul(workers, part)
		}
	}
}

// widenedPart is a part of a matrix of bfloat16.
type widenedPart struct{ row, column, rows, columns int }

// widen widens a part of the right operand to dst, which it returns.
func (r *run) widen(m *ir.Matmul, p widenedPart, dst []float32) []float32 {
	columns := m.B.View.Of.Dims[1]
	if p.columns == columns {
		vec.FromBfloat16(r.Level, dst, memory.Slice[uint16](r.ptr(m.B.View, p.row*columns), len(dst)))
		return dst
	}
	for i := range p.rows {
		src := memory.Slice[uint16](r.ptr(m.B.View, (p.row+i)*columns+p.column), p.columns)
		vec.FromBfloat16(r.Level, dst[i*p.columns:][:p.columns], src)
	}
	return dst
}

// double multiplies in double precision, for tests.
func (r *run) double(m *ir.Matmul) {
	n := m.A.Rows * m.B.Rows
	if n == 0 {
		return
	}
	r.Pool.For(m.Out.Of.Count/n, func(i int) {
		out := memory.Slice[float64](r.ptr(m.Out, i*n), n)
		i, j := m.Offsets(i)
		a, b := from[float64](r, m.A.View)[i:], from[float64](r, m.B.View)[j:]
		for j := range out {
			x, y := j/m.B.Rows*m.A.Row, j%m.B.Rows*m.B.Row
			out[j] = 0
			for k := range m.Inner {
				out[j] = math.FMA(a[x+k*m.A.Inner], b[y+k*m.B.Inner], out[j])
			}
		}
	})
}
