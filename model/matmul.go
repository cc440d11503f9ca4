package model

import (
	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	. "github.com/gomlx/gomlx/core/graph"

	. "github.com/goart-dev/art/internal/graphx"
)

// Matrices may be bfloat16 on the device, where norms, sums and activations stay float32. A device that packs matrices
// converts their elements to float32 as it reads them and computes in float32: only memory traffic is halved. On other
// devices a matmul rounds its other operand to bfloat16 as well and accumulates in float32, as the matrix units of GPUs
// do. The matrix is frozen: it has no gradient.

// matMul builds x [M, K] times w [K, N]: [M, N].
func matMul(x, w *Node) *Node {
	if w = upcast(w); w.DType() == x.DType() {
		return BatchMatMul(x, w)
	}
	return mixedMatMul(x, w, 0)
}

// matMulTransposed builds x [M, K] times the transpose of w [N, K]: [M, N].
func matMulTransposed(x, w *Node) *Node {
	if w = upcast(w); w.DType() == x.DType() {
		return MatMulTransposed(x, w)
	}
	return mixedMatMul(x, w, 1)
}

// mixedMatMul contracts x [M, K] with one axis of a bfloat16 matrix. The gradient of x is such a matmul too, over the
// other axis.
func mixedMatMul(x, w *Node, axis int) *Node {
	return withGradient(x,
		func(x *Node) *Node { return bfloat16MatMul(x, w, axis) },
		func(v *Node) *Node { return bfloat16MatMul(v, w, 1-axis) })
}

// bfloat16MatMul rounds x to the type of w, and accumulates in float32.
func bfloat16MatMul(x, w *Node, axis int) *Node {
	w.AssertRank(2)
	return Dot(ConvertDType(x, w.DType()), w).WithAccumulatorDType(dtypes.Float32).WithOutputDType(dtypes.Float32).
		General([]int{1}, nil, []int{axis}, nil)
}

// dotOf returns a dot product with keys or values of a cache. Those of a bfloat16 cache are multiplied as they are,
// with x rounded to their type and sums in float32.
func dotOf(x, cached *Node) *DotBuilder {
	if cached.DType() == x.DType() {
		return Dot(x, cached)
	}
	return Dot(ConvertDType(x, cached.DType()), cached).WithAccumulatorDType(x.DType()).WithOutputDType(x.DType())
}

// gatherRows builds rows of a matrix in float32.
func gatherRows(w, rows *Node) *Node {
	return float32s(Gather(upcast(w), rows))
}

// float32s is x in float32.
func float32s(x *Node) *Node {
	if x.DType() == dtypes.Float32 {
		return x
	}
	return ConvertDType(x, dtypes.Float32)
}

// upcast is w in float32, on a device that converts packed matrices as it reads them.
func upcast(w *Node) *Node {
	if w.DType() == dtypes.BFloat16 && packs(w.Graph().Backend()) {
		return ConvertDType(w, dtypes.Float32)
	}
	return w
}

func packs(device compute.Backend) bool {
	_, ok := device.(Packer)
	return ok
}

// CachesBFloat16 reports whether a device can have a KV cache in bfloat16: one that multiplies in bfloat16 itself.
func CachesBFloat16(device compute.Backend) bool {
	return !packs(device) && ProfileOf(device).BFloat16
}

// MultipliesBFloat16 reports whether a device multiplies bfloat16 matrices with float32 accumulation.
func MultipliesBFloat16(device compute.Backend) bool {
	return packs(device) || ProfileOf(device).BFloat16
}
