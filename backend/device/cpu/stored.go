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
const widenedElements = 1 << 19

// widening multiplies left, of m rows, by a matrix of bfloat16 whose rows lie together, some of which are widened at once.
func (d *dot) widening(r *run, workers *pool.Pool, c []float32, ldc int, left gemm.View, m int) {
	v := d.b.v.of
	rows, columns := v.matrix[0], v.matrix[1]
	most := min(rows, max(1, widenedElements/max(columns, 1)))
	space := r.device.memory.alloc(4 * most * columns)
	defer r.device.memory.release(space)
	for at := 0; at < rows; at += most {
		n := min(most, rows-at)
		part := list[float32](space.base, n*columns)
		vec.FromBfloat16(r.device.level, part, list[uint16](r.ptr(d.b.v, at*columns), n*columns))
		if d.contractsRows {
			a := gemm.View{Data: left.Data[at*left.Col:], Row: left.Row, Col: left.Col}
			d.kernels.Mul(workers, c, ldc, a, gemm.View{Data: part, Row: columns, Col: 1}, m, columns, n, at > 0)
			continue
		}
		d.kernels.Mul(workers, c[at:], ldc, left, gemm.View{Data: part, Row: 1, Col: columns}, m, n, columns, false)
	}
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
