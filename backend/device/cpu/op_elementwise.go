package cpu

import (
	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapeinference"
	"github.com/gomlx/compute/shapes"

	"github.com/goart-dev/art/backend/device/cpu/internal/exec"
	"github.com/goart-dev/art/backend/device/cpu/internal/ir"
)

// The operations below work element by element. Both sides of a binary one have the same type; a side may be a scalar,
// or have axes of 1.

// Abs is element-wise.
func (f *function) Abs(x compute.Value) (compute.Value, error) { return f.unary(compute.OpTypeAbs, x) }

// Ceil is element-wise.
func (f *function) Ceil(x compute.Value) (compute.Value, error) {
	return f.unary(compute.OpTypeCeil, x)
}

// Cos is element-wise.
func (f *function) Cos(x compute.Value) (compute.Value, error) { return f.unary(compute.OpTypeCos, x) }

// Erf is element-wise.
func (f *function) Erf(x compute.Value) (compute.Value, error) { return f.unary(compute.OpTypeErf, x) }

// Exp is element-wise.
func (f *function) Exp(x compute.Value) (compute.Value, error) { return f.unary(compute.OpTypeExp, x) }

// Expm1 is element-wise.
func (f *function) Expm1(x compute.Value) (compute.Value, error) {
	return f.unary(compute.OpTypeExpm1, x)
}

// Floor is element-wise.
func (f *function) Floor(x compute.Value) (compute.Value, error) {
	return f.unary(compute.OpTypeFloor, x)
}

// IsFinite is element-wise.
func (f *function) IsFinite(x compute.Value) (compute.Value, error) {
	return f.unary(compute.OpTypeIsFinite, x)
}

// IsNaN is element-wise.
func (f *function) IsNaN(x compute.Value) (compute.Value, error) {
	return f.unary(compute.OpTypeIsNaN, x)
}

// Log is element-wise.
func (f *function) Log(x compute.Value) (compute.Value, error) { return f.unary(compute.OpTypeLog, x) }

// Log1p is element-wise.
func (f *function) Log1p(x compute.Value) (compute.Value, error) {
	return f.unary(compute.OpTypeLog1p, x)
}

// LogicalNot is element-wise.
func (f *function) LogicalNot(x compute.Value) (compute.Value, error) {
	return f.unary(compute.OpTypeLogicalNot, x)
}

// Logistic is element-wise.
func (f *function) Logistic(x compute.Value) (compute.Value, error) {
	return f.unary(compute.OpTypeLogistic, x)
}

// Neg is element-wise.
func (f *function) Neg(x compute.Value) (compute.Value, error) { return f.unary(compute.OpTypeNeg, x) }

// Round is element-wise.
func (f *function) Round(x compute.Value) (compute.Value, error) {
	return f.unary(compute.OpTypeRound, x)
}

// Rsqrt is element-wise.
func (f *function) Rsqrt(x compute.Value) (compute.Value, error) {
	return f.unary(compute.OpTypeRsqrt, x)
}

// Sign is element-wise.
func (f *function) Sign(x compute.Value) (compute.Value, error) {
	return f.unary(compute.OpTypeSign, x)
}

// Sin is element-wise.
func (f *function) Sin(x compute.Value) (compute.Value, error) { return f.unary(compute.OpTypeSin, x) }

// Sqrt is element-wise.
func (f *function) Sqrt(x compute.Value) (compute.Value, error) {
	return f.unary(compute.OpTypeSqrt, x)
}

// Tanh is element-wise.
func (f *function) Tanh(x compute.Value) (compute.Value, error) {
	return f.unary(compute.OpTypeTanh, x)
}

// Add is element-wise.
func (f *function) Add(a, b compute.Value) (compute.Value, error) {
	return f.binary(compute.OpTypeAdd, a, b)
}

// Div is element-wise.
func (f *function) Div(a, b compute.Value) (compute.Value, error) {
	return f.binary(compute.OpTypeDiv, a, b)
}

// LogicalAnd is element-wise.
func (f *function) LogicalAnd(a, b compute.Value) (compute.Value, error) {
	return f.binary(compute.OpTypeLogicalAnd, a, b)
}

// LogicalOr is element-wise.
func (f *function) LogicalOr(a, b compute.Value) (compute.Value, error) {
	return f.binary(compute.OpTypeLogicalOr, a, b)
}

// LogicalXor is element-wise.
func (f *function) LogicalXor(a, b compute.Value) (compute.Value, error) {
	return f.binary(compute.OpTypeLogicalXor, a, b)
}

// Max is element-wise.
func (f *function) Max(a, b compute.Value) (compute.Value, error) {
	return f.binary(compute.OpTypeMax, a, b)
}

// Min is element-wise.
func (f *function) Min(a, b compute.Value) (compute.Value, error) {
	return f.binary(compute.OpTypeMin, a, b)
}

// Mul is element-wise.
func (f *function) Mul(a, b compute.Value) (compute.Value, error) {
	return f.binary(compute.OpTypeMul, a, b)
}

// Pow is element-wise.
func (f *function) Pow(a, b compute.Value) (compute.Value, error) {
	return f.binary(compute.OpTypePow, a, b)
}

// Rem is element-wise.
func (f *function) Rem(a, b compute.Value) (compute.Value, error) {
	return f.binary(compute.OpTypeRem, a, b)
}

// Sub is element-wise.
func (f *function) Sub(a, b compute.Value) (compute.Value, error) {
	return f.binary(compute.OpTypeSub, a, b)
}

// BitwiseAnd is element-wise.
func (f *function) BitwiseAnd(a, b compute.Value) (compute.Value, error) {
	return f.binary(compute.OpTypeBitwiseAnd, a, b)
}

// BitwiseOr is element-wise.
func (f *function) BitwiseOr(a, b compute.Value) (compute.Value, error) {
	return f.binary(compute.OpTypeBitwiseOr, a, b)
}

// BitwiseXor is element-wise.
func (f *function) BitwiseXor(a, b compute.Value) (compute.Value, error) {
	return f.binary(compute.OpTypeBitwiseXor, a, b)
}

// BitwiseNot is element-wise.
func (f *function) BitwiseNot(x compute.Value) (compute.Value, error) {
	return f.unary(compute.OpTypeBitwiseNot, x)
}

// Equal compares element by element.
func (f *function) Equal(a, b compute.Value) (compute.Value, error) {
	return f.binary(compute.OpTypeEqual, a, b)
}

// NotEqual compares element by element.
func (f *function) NotEqual(a, b compute.Value) (compute.Value, error) {
	return f.binary(compute.OpTypeNotEqual, a, b)
}

// GreaterOrEqual compares element by element.
func (f *function) GreaterOrEqual(a, b compute.Value) (compute.Value, error) {
	return f.binary(compute.OpTypeGreaterOrEqual, a, b)
}

// GreaterThan compares element by element.
func (f *function) GreaterThan(a, b compute.Value) (compute.Value, error) {
	return f.binary(compute.OpTypeGreaterThan, a, b)
}

// LessOrEqual compares element by element.
func (f *function) LessOrEqual(a, b compute.Value) (compute.Value, error) {
	return f.binary(compute.OpTypeLessOrEqual, a, b)
}

// LessThan compares element by element.
func (f *function) LessThan(a, b compute.Value) (compute.Value, error) {
	return f.binary(compute.OpTypeLessThan, a, b)
}

// unary adds an operation of one operand.
func (f *function) unary(op compute.OpType, v compute.Value) (compute.Value, error) {
	x, err := f.node(v)
	if err != nil {
		return nil, err
	}
	if op == compute.OpTypeIsFinite || op == compute.OpTypeIsNaN {
		return f.element(op, shapes.Make(dtypes.Bool, x.Shape.Dimensions...), x)
	}
	shape, err := shapeinference.UnaryOp(op, x.Shape)
	if err != nil {
		return nil, err
	}
	return f.element(op, shape, x)
}

// binary adds an operation of two operands, which it brings to one shape first.
func (f *function) binary(op compute.OpType, a, b compute.Value) (compute.Value, error) {
	in, err := f.operands(a, b)
	if err != nil {
		return nil, err
	}
	infer := shapeinference.BinaryOp
	if shapeinference.ComparisonOperations.Has(op) {
		infer = shapeinference.ComparisonOp
	}
	shape, err := infer(op, in[0].Shape, in[1].Shape)
	if err != nil {
		return nil, err
	}
	return f.element(op, shape, in...)
}

// element adds an element-wise operation. Operands are broadcast to its shape.
func (f *function) element(op compute.OpType, shape shapes.Shape, in ...*ir.Node) (compute.Value, error) {
	wide := make([]*ir.Node, len(in))
	for i, x := range in {
		v, err := f.broadcastTo(x, shape.Dimensions)
		if err != nil {
			return nil, err
		}
		wide[i] = v
	}
	if !exec.HasElementwise(op, shape.DType, wide[0].Shape.DType) {
		return nil, missing(op, wide[0].Shape.DType)
	}
	return f.add(op, shape, nil, wide...)
}

// broadcastTo repeats x, a scalar or of the same rank, along axes of 1.
func (f *function) broadcastTo(x *ir.Node, dims []int) (*ir.Node, error) {
	if x.Shape.EqualDimensions(shapes.Make(x.Shape.DType, dims...)) {
		return x, nil
	}
	var axes []int
	for i := range x.Shape.Rank() {
		axes = append(axes, i)
	}
	v, err := f.add(compute.OpTypeBroadcastInDim, shapes.Make(x.Shape.DType, dims...), ir.BroadcastAttr{Axes: axes}, x)
	if err != nil {
		return nil, err
	}
	return v.(*ir.Node), nil
}

// ConvertDType converts each element.
func (f *function) ConvertDType(v compute.Value, to dtypes.DType) (compute.Value, error) {
	x, err := f.node(v)
	if err != nil {
		return nil, err
	}
	if x.Shape.DType == to {
		return x, nil
	}
	return f.element(compute.OpTypeConvertDType, shapes.Make(to, x.Shape.Dimensions...), x)
}

// Where chooses between two values by a condition, element by element.
func (f *function) Where(condition, onTrue, onFalse compute.Value) (compute.Value, error) {
	in, err := f.operands(condition, onTrue, onFalse)
	if err != nil {
		return nil, err
	}
	shape, err := shapeinference.Where(in[0].Shape, in[1].Shape, in[2].Shape)
	if err != nil {
		return nil, err
	}
	return f.element(compute.OpTypeWhere, shape, in...)
}

// Clamp is min(max(x, low), high).
func (f *function) Clamp(low, x, high compute.Value) (compute.Value, error) {
	v, err := f.Max(x, low)
	if err != nil {
		return nil, err
	}
	return f.Min(v, high)
}
