package model

import (
	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	. "github.com/gomlx/gomlx/core/graph"

	. "github.com/goart-dev/art/internal/graphx"
)

// Matrices may be bfloat16 on the device, where norms, sums and what lies between products stay float32. A device that
// packs matrices widens their numbers while it reads them, and all else is float32: what is halved is what it reads. On
// others a product rounds its other side to bfloat16 as well and sums up in float32, which is what matrix units of GPUs
// do. The matrix is frozen: it has no gradient.

// times builds x [M, K] times w [K, N]: [M, N].
func times(x, w *Node) *Node {
	if w = widened(w); w.DType() == x.DType() {
		return Product(x, w)
	}
	return mixed(x, w, 0)
}

// timesT builds x [M, K] times the transpose of w [N, K]: [M, N].
func timesT(x, w *Node) *Node {
	if w = widened(w); w.DType() == x.DType() {
		return ProductT(x, w)
	}
	return mixed(x, w, 1)
}

// mixed contracts x [M, K] with one axis of a bfloat16 matrix. The gradient to x is such a product too, over the other
// axis.
func mixed(x, w *Node, axis int) *Node {
	return withGradient(x,
		func(x *Node) *Node { return rounded(x, w, axis) },
		func(v *Node) *Node { return rounded(v, w, 1-axis) })
}

func rounded(x, w *Node, axis int) *Node {
	w.AssertRank(2)
	return Dot(ConvertDType(x, w.DType()), w).WithAccumulatorDType(dtypes.Float32).WithOutputDType(dtypes.Float32).
		General([]int{1}, nil, []int{axis}, nil)
}

// gathered builds rows of a matrix in float32.
func gathered(w, rows *Node) *Node {
	x := Gather(widened(w), rows)
	if x.DType() == dtypes.BFloat16 {
		x = ConvertDType(x, dtypes.Float32)
	}
	return x
}

// widened is w in float32, on a device that widens while it reads.
func widened(w *Node) *Node {
	if w.DType() == dtypes.BFloat16 && packs(w.Graph().Backend()) {
		return ConvertDType(w, dtypes.Float32)
	}
	return w
}

func packs(device compute.Backend) bool {
	_, ok := device.(Packer)
	return ok
}

// MultipliesBFloat16 reports whether a device has products of bfloat16 matrices that are summed up in float32.
func MultipliesBFloat16(device compute.Backend) bool { return packs(device) || device.Name() == "xla" }
