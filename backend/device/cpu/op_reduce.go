package cpu

import (
	"slices"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapeinference"
	"github.com/gomlx/compute/shapes"

	"github.com/goart-dev/art/backend/device/cpu/internal/exec"
	"github.com/goart-dev/art/backend/device/cpu/internal/ir"
)

// Reductions reduce axes; none stands for all.

func (f *function) ReduceSum(x value, axes ...int) (value, error) {
	return f.reduce(compute.OpTypeReduceSum, x, axes)
}

func (f *function) ReduceMax(x value, axes ...int) (value, error) {
	return f.reduce(compute.OpTypeReduceMax, x, axes)
}

func (f *function) ReduceMin(x value, axes ...int) (value, error) {
	return f.reduce(compute.OpTypeReduceMin, x, axes)
}

func (f *function) ReduceProduct(x value, axes ...int) (value, error) {
	return f.reduce(compute.OpTypeReduceProduct, x, axes)
}

func (f *function) ReduceLogicalAnd(x value, axes ...int) (value, error) {
	return f.reduce(compute.OpTypeReduceLogicalAnd, x, axes)
}

func (f *function) ReduceLogicalOr(x value, axes ...int) (value, error) {
	return f.reduce(compute.OpTypeReduceLogicalOr, x, axes)
}

func (f *function) reduce(op compute.OpType, v value, axes []int) (value, error) {
	x, err := f.node(v)
	if err != nil {
		return nil, err
	}
	if x.Shape.DType == dtypes.BFloat16 {
		return f.inFloat32(v, func(v value) (value, error) { return f.reduce(op, v, axes) })
	}
	if len(axes) == 0 {
		for i := range x.Shape.Rank() {
			axes = append(axes, i)
		}
	}
	shape, err := shapeinference.Reduce(x.Shape, axes)
	if err != nil {
		return nil, err
	}
	if !exec.HasReduction(op, x.Shape.DType) {
		return nil, missing(op, x.Shape.DType)
	}
	return f.add(op, shape, ir.ReduceAttr{Axes: slices.Sorted(slices.Values(axes))}, x)
}

// inFloat32 computes on a bfloat16 in float32, and rounds the result.
func (f *function) inFloat32(v value, op func(value) (value, error)) (value, error) {
	wide, err := f.ConvertDType(v, dtypes.Float32)
	if err != nil {
		return nil, err
	}
	if v, err = op(wide); err != nil {
		return nil, err
	}
	return f.ConvertDType(v, dtypes.BFloat16)
}

// ArgMinMax returns the index of the least or greatest element of an axis, the first of equal ones, or that of a NaN.
func (f *function) ArgMinMax(v value, ax int, out dtypes.DType, isMin bool) (value, error) {
	x, err := f.node(v)
	if err != nil {
		return nil, err
	}
	if x.Shape.DType == dtypes.BFloat16 {
		wide, err := f.ConvertDType(v, dtypes.Float32)
		if err != nil {
			return nil, err
		}
		return f.ArgMinMax(wide, ax, out, isMin)
	}
	shape, err := shapeinference.ArgMinMax(x.Shape, ax, out)
	if err != nil {
		return nil, err
	}
	if !out.IsInt() || !exec.HasArgMinMax(x.Shape.DType) {
		return nil, missing(compute.OpTypeArgMinMax, x.Shape.DType)
	}
	return f.add(compute.OpTypeArgMinMax, shape, ir.ArgMinMaxAttr{Axis: ax, IsMin: isMin}, x)
}

// CumSum is the running sum along an axis.
func (f *function) CumSum(v value, ax int, options compute.CumSumOptions) (value, error) {
	x, err := f.node(v)
	if err != nil {
		return nil, err
	}
	if x.Shape.DType == dtypes.BFloat16 {
		return f.inFloat32(v, func(v value) (value, error) { return f.CumSum(v, ax, options) })
	}
	shape, err := shapeinference.CumSum(x.Shape, ax)
	if err != nil {
		return nil, err
	}
	if !exec.HasCumSum(x.Shape.DType) {
		return nil, missing(compute.OpTypeCumSum, x.Shape.DType)
	}
	return f.add(compute.OpTypeCumSum, shape, ir.CumSumAttr{Axis: ax, Options: options}, x)
}

// DotGeneral multiplies and sums over the contracting axes. The output has the batch axes, the other axes of lhs, and
// those of rhs.
func (f *function) DotGeneral(
	lhs value, lhsContract, lhsBatch []int, rhs value, rhsContract, rhsBatch []int,
	config compute.DotGeneralConfig,
) (value, error) {
	in, err := f.operands(lhs, rhs)
	if err != nil {
		return nil, err
	}
	shape, err := shapeinference.DotGeneral(in[0].Shape, lhsContract, lhsBatch, in[1].Shape, rhsContract, rhsBatch, config)
	if err != nil {
		return nil, err
	}
	kind := in[0].Shape.DType // of the sums
	switch kind {
	case dtypes.BFloat16:
		kind = dtypes.Float32
	case dtypes.Float32, dtypes.Float64:
	default:
		return nil, missing(compute.OpTypeDotGeneral, kind)
	}
	if a := config.AccumulatorDType; a != dtypes.InvalidDType && a != kind && a != in[0].Shape.DType {
		return nil, missing(compute.OpTypeDotGeneral, a)
	}
	for i, x := range in {
		v, err := f.ConvertDType(x, kind)
		if err != nil {
			return nil, err
		}
		in[i] = v.(*ir.Node)
	}
	attr := ir.MatmulAttr{Contract: [2][]int{lhsContract, rhsContract}, Batch: [2][]int{lhsBatch, rhsBatch}}
	if attr.OfMatrix() {
		in[1] = unconverted(in[1])
	}
	v, err := f.multiply(shapes.Make(kind, shape.Dimensions...), attr, in)
	if err != nil {
		return nil, err
	}
	return f.ConvertDType(v, shape.DType)
}

// Iota counts from 0 along an axis.
func (f *function) Iota(shape shapes.Shape, ax int) (value, error) {
	if ax < 0 || ax >= shape.Rank() {
		return nil, badAxis(compute.OpTypeIota, ax, shape)
	}
	if shape.DType == dtypes.BFloat16 {
		v, err := f.Iota(shapes.Make(dtypes.Float32, shape.Dimensions...), ax)
		if err != nil {
			return nil, err
		}
		return f.ConvertDType(v, shape.DType)
	}
	if !exec.HasIota(shape.DType) {
		return nil, missing(compute.OpTypeIota, shape.DType)
	}
	return f.add(compute.OpTypeIota, shape, ir.AxisAttr{Axis: ax})
}

// unconverted returns the input that x converts, if it is a matrix of bfloat16, else x.
func unconverted(x *ir.Node) *ir.Node {
	if x.Op != compute.OpTypeConvertDType || x.Shape.DType != dtypes.Float32 {
		return x
	}
	p := x.In[0]
	if p.Op != compute.OpTypeParameter || p.Shape.DType != dtypes.BFloat16 || p.Shape.Rank() != 2 || p.Shape.Size() == 0 {
		return x
	}
	return p
}
