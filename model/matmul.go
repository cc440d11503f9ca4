package model

import (
	"github.com/gomlx/compute/dtypes"
	. "github.com/gomlx/gomlx/core/graph"

	. "github.com/goart-dev/art/internal/graphx"
)

// Matrices may be bfloat16 on the device, where norms, sums and activations stay float32. A device that packs matrices
// converts their elements to float32 as it reads them and computes in float32: only memory traffic is halved. On other
// devices a matmul rounds its other operand to bfloat16 as well and accumulates in float32, as the matrix units of GPUs
// do. Matrices of int8 are multiplied in the same way, for bfloat16 has all of their numbers. A matrix of either type
// is frozen: it has no gradient.

// scaleSuffix follows the name of a matrix of int8 in that of its scales.
const scaleSuffix = ".scale"

// matrix is a weight [N, K] as graphs read it. scale [N] is what its rows are multiplied by: nil but for int8.
type matrix struct{ w, scale *Node }

func (f *Forward) matrix(name string) matrix {
	m := matrix{w: f.Param(name)}
	if m.w.DType() == dtypes.Int8 {
		m.scale = f.Param(name + scaleSuffix)
	}
	return m
}

// matMul builds x [M, N] times m [N, K]: [M, K].
func matMul(x *Node, m matrix) *Node {
	if w := upcast(m.w); w.DType() == x.DType() {
		return BatchMatMul(x, w)
	}
	return m.mixedMatMul(x, 0)
}

// matMulTransposed builds x [M, K] times the transpose of m [N, K]: [M, N].
func matMulTransposed(x *Node, m matrix) *Node {
	if w := upcast(m.w); w.DType() == x.DType() {
		return MatMulTransposed(x, w)
	}
	return m.mixedMatMul(x, 1)
}

// mixedMatMul contracts x with one axis of a bfloat16 or int8 matrix; the gradient of x is one over the other axis.
func (m matrix) mixedMatMul(x *Node, axis int) *Node {
	return withGradient(x,
		func(x *Node) *Node { return m.bfloat16MatMul(x, axis) },
		func(v *Node) *Node { return m.bfloat16MatMul(v, 1-axis) })
}

// bfloat16MatMul rounds x to bfloat16, and accumulates in float32.
func (m matrix) bfloat16MatMul(x *Node, axis int) *Node {
	m.w.AssertRank(2)
	if m.scale != nil && axis == 0 {
		x = Mul(x, ExpandLeftToRank(m.scale, 2))
	}
	w := m.w
	if w.DType() != dtypes.BFloat16 {
		w = ConvertDType(w, dtypes.BFloat16)
	}
	y := Dot(ConvertDType(x, w.DType()), w).WithAccumulatorDType(dtypes.Float32).WithOutputDType(dtypes.Float32).
		General([]int{1}, nil, []int{axis}, nil)
	if m.scale != nil && axis == 1 {
		y = Mul(y, ExpandLeftToRank(m.scale, 2))
	}
	return y
}

// dotOf returns a dot product with keys or values of a cache. Those of a bfloat16 cache are multiplied as they are,
// with x rounded to their type and sums in float32.
func dotOf(x, cached *Node) *DotBuilder {
	if cached.DType() == x.DType() {
		return Dot(x, cached)
	}
	return Dot(ConvertDType(x, cached.DType()), cached).WithAccumulatorDType(x.DType()).WithOutputDType(x.DType())
}

// gatherRows builds rows [..., 1] of a matrix in float32.
func gatherRows(m matrix, rows *Node) *Node {
	x := float32s(Gather(upcast(m.w), rows))
	if m.scale != nil {
		x = Mul(x, ExpandAxes(Gather(m.scale, rows), -1))
	}
	return x
}

func float32s(x *Node) *Node {
	if x.DType() == dtypes.Float32 {
		return x
	}
	return ConvertDType(x, dtypes.Float32)
}

// upcast is w in float32, on a device that converts packed matrices as it reads them.
func upcast(w *Node) *Node {
	if w.DType() == dtypes.BFloat16 && Packs(w.Graph().Backend()) {
		return ConvertDType(w, dtypes.Float32)
	}
	return w
}
