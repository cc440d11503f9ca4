package cpu

import (
	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapeinference"
	"github.com/gomlx/compute/shapes"

	"github.com/goart-dev/art/backend/device/cpu/internal/exec"
	"github.com/goart-dev/art/backend/device/cpu/internal/ir"
)

// value is a node of a graph that is being built.
type value = compute.Value

// The operations below work element by element. Both sides of a binary one have the same type; a side may be a scalar,
// or have axes of 1.

func (f *function) Abs(x value) (value, error)        { return f.unary(compute.OpTypeAbs, x) }
func (f *function) Ceil(x value) (value, error)       { return f.unary(compute.OpTypeCeil, x) }
func (f *function) Cos(x value) (value, error)        { return f.unary(compute.OpTypeCos, x) }
func (f *function) Erf(x value) (value, error)        { return f.unary(compute.OpTypeErf, x) }
func (f *function) Exp(x value) (value, error)        { return f.unary(compute.OpTypeExp, x) }
func (f *function) Expm1(x value) (value, error)      { return f.unary(compute.OpTypeExpm1, x) }
func (f *function) Floor(x value) (value, error)      { return f.unary(compute.OpTypeFloor, x) }
func (f *function) IsFinite(x value) (value, error)   { return f.unary(compute.OpTypeIsFinite, x) }
func (f *function) IsNaN(x value) (value, error)      { return f.unary(compute.OpTypeIsNaN, x) }
func (f *function) Log(x value) (value, error)        { return f.unary(compute.OpTypeLog, x) }
func (f *function) Log1p(x value) (value, error)      { return f.unary(compute.OpTypeLog1p, x) }
func (f *function) LogicalNot(x value) (value, error) { return f.unary(compute.OpTypeLogicalNot, x) }
func (f *function) Logistic(x value) (value, error)   { return f.unary(compute.OpTypeLogistic, x) }
func (f *function) Neg(x value) (value, error)        { return f.unary(compute.OpTypeNeg, x) }
func (f *function) Round(x value) (value, error)      { return f.unary(compute.OpTypeRound, x) }
func (f *function) Rsqrt(x value) (value, error)      { return f.unary(compute.OpTypeRsqrt, x) }
func (f *function) Sign(x value) (value, error)       { return f.unary(compute.OpTypeSign, x) }
func (f *function) Sin(x value) (value, error)        { return f.unary(compute.OpTypeSin, x) }
func (f *function) Sqrt(x value) (value, error)       { return f.unary(compute.OpTypeSqrt, x) }
func (f *function) Tanh(x value) (value, error)       { return f.unary(compute.OpTypeTanh, x) }
func (f *function) BitwiseNot(x value) (value, error) { return f.unary(compute.OpTypeBitwiseNot, x) }

func (f *function) Add(a, b value) (value, error)      { return f.binary(compute.OpTypeAdd, a, b) }
func (f *function) Div(a, b value) (value, error)      { return f.binary(compute.OpTypeDiv, a, b) }
func (f *function) Max(a, b value) (value, error)      { return f.binary(compute.OpTypeMax, a, b) }
func (f *function) Min(a, b value) (value, error)      { return f.binary(compute.OpTypeMin, a, b) }
func (f *function) Mul(a, b value) (value, error)      { return f.binary(compute.OpTypeMul, a, b) }
func (f *function) Pow(a, b value) (value, error)      { return f.binary(compute.OpTypePow, a, b) }
func (f *function) Rem(a, b value) (value, error)      { return f.binary(compute.OpTypeRem, a, b) }
func (f *function) Sub(a, b value) (value, error)      { return f.binary(compute.OpTypeSub, a, b) }
func (f *function) Equal(a, b value) (value, error)    { return f.binary(compute.OpTypeEqual, a, b) }
func (f *function) NotEqual(a, b value) (value, error) { return f.binary(compute.OpTypeNotEqual, a, b) }
func (f *function) LessThan(a, b value) (value, error) { return f.binary(compute.OpTypeLessThan, a, b) }

func (f *function) LogicalAnd(a, b value) (value, error) {
	return f.binary(compute.OpTypeLogicalAnd, a, b)
}

func (f *function) LogicalOr(a, b value) (value, error) {
	return f.binary(compute.OpTypeLogicalOr, a, b)
}

func (f *function) LogicalXor(a, b value) (value, error) {
	return f.binary(compute.OpTypeLogicalXor, a, b)
}

func (f *function) BitwiseAnd(a, b value) (value, error) {
	return f.binary(compute.OpTypeBitwiseAnd, a, b)
}

func (f *function) BitwiseOr(a, b value) (value, error) {
	return f.binary(compute.OpTypeBitwiseOr, a, b)
}

func (f *function) BitwiseXor(a, b value) (value, error) {
	return f.binary(compute.OpTypeBitwiseXor, a, b)
}

func (f *function) GreaterOrEqual(a, b value) (value, error) {
	return f.binary(compute.OpTypeGreaterOrEqual, a, b)
}

func (f *function) GreaterThan(a, b value) (value, error) {
	return f.binary(compute.OpTypeGreaterThan, a, b)
}

func (f *function) LessOrEqual(a, b value) (value, error) {
	return f.binary(compute.OpTypeLessOrEqual, a, b)
}

// unary adds an operation of one operand.
func (f *function) unary(op compute.OpType, v value) (value, error) {
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
func (f *function) binary(op compute.OpType, a, b value) (value, error) {
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
func (f *function) element(op compute.OpType, shape shapes.Shape, in ...*ir.Node) (value, error) {
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
func (f *function) ConvertDType(v value, to dtypes.DType) (value, error) {
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
func (f *function) Where(condition, onTrue, onFalse value) (value, error) {
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
func (f *function) Clamp(low, x, high value) (value, error) {
	v, err := f.Max(x, low)
	if err != nil {
		return nil, err
	}
	return f.Min(v, high)
}
