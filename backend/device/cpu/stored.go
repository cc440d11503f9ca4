package cpu

import (
	"slices"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/dtypes/bfloat16"

	"github.com/goart-dev/art/backend/device/cpu/internal/gemm"
	"github.com/goart-dev/art/backend/device/cpu/internal/pool"
	"github.com/goart-dev/art/backend/device/cpu/internal/vec"
)

// A matrix that is stored in bfloat16 and converted to float32, of which rows are gathered or which is the right side of a
// product, is not converted as a whole: products widen its numbers while they stream them. That reads half of the bytes, and
// widening is exact, so the bits are those of converting first.

// stored returns the input that x converts, if it is a matrix of bfloat16, else x.
func stored(x *node) *node {
	if x.op != compute.OpTypeConvertDType || x.shape.DType != dtypes.Float32 {
		return x
	}
	p := x.in[0]
	if p.op != compute.OpTypeParameter || p.shape.DType != dtypes.BFloat16 || p.shape.Rank() != 2 || p.shape.Size() == 0 {
		return x
	}
	return p
}

// ofMatrix reports whether a product has a plain matrix on its right.
func (p product) ofMatrix() bool { return len(p.contract[1]) == 1 && len(p.batch[1]) == 0 }

// ofRows reports whether whole rows of a matrix are gathered, and written one after another: out is the rank of the result.
func (g gather) ofRows(columns, out int) bool {
	return slices.Equal(g.start, []int{0}) && slices.Equal(g.collapsed, []int{0}) && g.size[1] == columns && slices.Equal(g.offsets, []int{out - 1})
}

// widenedElements is how much of a matrix of bfloat16, rows first, is widened at once for a product.
const widenedElements = 1 << 10 * gemm.Block

// widening multiplies left, of m rows, by a matrix of bfloat16 whose rows lie together, part of which is widened at once.
func (d *dot) widening(r *run, workers *pool.Pool, c []float32, ldc int, left gemm.View, m int) {
	v := d.b.v.of
	rows, columns := v.matrix[0], v.matrix[1]
	high, width := min(rows, max(1, widenedElements/max(columns, 1))), columns
	if d.contractsRows { // whole fixed blocks of the contracted axis, or the sums would be other ones
		width = min(columns, widenedElements/gemm.Block)
		high = min(rows, widenedElements/max(width, 1)/gemm.Block*gemm.Block)
	}
	space := r.device.memory.alloc(4 * high * width)
	defer r.device.memory.release(space)
	for at := 0; at < rows; at += high {
		for j := 0; j < columns; j += width {
			n, wide := min(high, rows-at), min(width, columns-j)
			part := d.widened(r, space, at, j, n, wide)
			if d.contractsRows {
				a := gemm.View{Data: left.Data[at*left.Col:], Row: left.Row, Col: left.Col}
				d.kernels.Mul(workers, c[j:], ldc, a, gemm.View{Data: part, Row: wide, Col: 1}, m, wide, n, at > 0)
				continue
			}
			d.kernels.Mul(workers, c[at:], ldc, left, gemm.View{Data: part, Row: 1, Col: columns}, m, n, columns, false)
		}
	}
}

// widened widens n rows of so many columns of the right operand, from a row and a column on.
func (d *dot) widened(r *run, space span, row, column, n, width int) []float32 {
	part, columns := list[float32](space.base, n*width), d.b.v.of.matrix[1]
	if width == columns {
		vec.FromBfloat16(r.device.level, part, list[uint16](r.ptr(d.b.v, row*columns), n*width))
		return part
	}
	for i := range n {
		vec.FromBfloat16(r.device.level, part[i*width:][:width], list[uint16](r.ptr(d.b.v, (row+i)*columns+column), width))
	}
	return part
}

// packHalf packs rows of float32 as bfloat16, rounded to the nearest.
func (b *Buffer) packHalf(rows []float32, first, n int) {
	half := make([]uint16, len(rows))
	vec.ToBfloat16(b.device.level, half, rows)
	gemm.PackBF16(nil, b.packed, first, half, 1, b.packed.K, n)
}

// unpackHalf writes the rows of a packed matrix of bfloat16 one after another.
func unpackHalf(dst []bfloat16.BFloat16, p *gemm.Packed) {
	row := make([]float32, p.K)
	for j := range p.N {
		p.Column(row, j)
		round(dst[j*p.K:][:p.K], row)
	}
}
