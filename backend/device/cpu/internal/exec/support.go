package exec

import (
	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"

	"github.com/goart-dev/art/backend/device/cpu/internal/vec"
)

// HasElementwise reports whether there is a kernel for an elementwise operation, by the type of its result and that of
// its first operand.
func HasElementwise(op compute.OpType, out, in dtypes.DType) bool {
	return elementKernel(vec.Portable, op, out, in) != nil
}

// HasReduction reports whether there is a kernel for a reduction of a type.
func HasReduction(op compute.OpType, t dtypes.DType) bool {
	return reduceKernel(vec.Portable, op, t) != nil
}

// HasScatter reports whether there is a kernel for a scatter of a type.
func HasScatter(op compute.OpType, t dtypes.DType) bool {
	return scatterKernel(vec.Portable, op, t) != nil
}

// HasArgMinMax reports whether there is a kernel that finds the least or greatest element of a type.
func HasArgMinMax(t dtypes.DType) bool { return types[t].extreme != nil }

// HasCumSum reports whether there is a kernel for running sums of a type.
func HasCumSum(t dtypes.DType) bool { return types[t].cumulate != nil }

// HasIota reports whether there is a kernel that counts in a type.
func HasIota(t dtypes.DType) bool { return types[t].count != nil }
