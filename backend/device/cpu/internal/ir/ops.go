package ir

import (
	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"

	"github.com/goart-dev/art/backend/device/cpu/internal/vec"
)

// IsView reports whether an operation only says where elements are.
func IsView(op compute.OpType) bool {
	switch op {
	case compute.OpTypeIdentity, compute.OpTypeReshape, compute.OpTypeTranspose, compute.OpTypeBroadcastInDim,
		compute.OpTypeSlice, compute.OpTypeReverse:
		return true
	}
	return false
}

// IsReduction reports whether an operation reduces axes.
func IsReduction(op compute.OpType) bool {
	switch op {
	case compute.OpTypeReduceSum, compute.OpTypeReduceMax, compute.OpTypeReduceMin, compute.OpTypeReduceProduct,
		compute.OpTypeReduceLogicalAnd, compute.OpTypeReduceLogicalOr:
		return true
	}
	return false
}

// IsElementwise reports whether an operation computes each element of its result from those of its operands at the same
// position.
func IsElementwise(op compute.OpType) bool {
	_, unary := UnaryOps[op]
	_, binary := BinaryOps[op]
	_, comparison := CompareOps[op]
	return unary || binary || comparison || goOps[op]
}

// ReducesInPieces reports whether a row can be reduced piece by piece, with the bits of reducing it at once.
func ReducesInPieces(op compute.OpType, t dtypes.DType) bool {
	switch op {
	case compute.OpTypeReduceSum, compute.OpTypeReduceMax, compute.OpTypeReduceMin:
		return t == dtypes.Float32
	}
	return false
}

// HasScalarForm reports whether there are kernels for float32 in which one operand is a number.
func HasScalarForm(op compute.OpType) bool {
	_, binary := BinaryOps[op]
	_, comparison := CompareOps[op]
	return binary || comparison
}

// UnaryOps are the operations on one float32 that have vector kernels, BinaryOps those on two, and CompareOps those
// that compare two.
var (
	UnaryOps = map[compute.OpType]vec.UnaryOp{
		compute.OpTypeNeg: vec.OpNeg, compute.OpTypeAbs: vec.OpAbs, compute.OpTypeSign: vec.OpSign,
		compute.OpTypeSqrt: vec.OpSqrt, compute.OpTypeRsqrt: vec.OpRsqrt,
		compute.OpTypeExp: vec.OpExp, compute.OpTypeExpm1: vec.OpExpm1,
		compute.OpTypeLog: vec.OpLog, compute.OpTypeLog1p: vec.OpLog1p,
		compute.OpTypeLogistic: vec.OpSigmoid, compute.OpTypeTanh: vec.OpTanh,
		compute.OpTypeSin: vec.OpSin, compute.OpTypeCos: vec.OpCos,
		compute.OpTypeFloor: vec.OpFloor, compute.OpTypeCeil: vec.OpCeil, compute.OpTypeRound: vec.OpRound,
	}
	BinaryOps = map[compute.OpType]vec.BinaryOp{
		compute.OpTypeAdd: vec.OpAdd, compute.OpTypeSub: vec.OpSub, compute.OpTypeMul: vec.OpMul,
		compute.OpTypeDiv: vec.OpDiv, compute.OpTypeMax: vec.OpMax, compute.OpTypeMin: vec.OpMin,
	}
	CompareOps = map[compute.OpType]vec.CompareOp{
		compute.OpTypeEqual: vec.OpEqual, compute.OpTypeNotEqual: vec.OpNotEqual,
		compute.OpTypeLessThan: vec.OpLess, compute.OpTypeLessOrEqual: vec.OpLessEqual,
		compute.OpTypeGreaterThan: vec.OpGreater, compute.OpTypeGreaterOrEqual: vec.OpGreaterEqual,
	}
)

// goOps are the elementwise operations that are computed in Go for all types.
var goOps = map[compute.OpType]bool{
	compute.OpTypeConvertDType: true, compute.OpTypeWhere: true, compute.OpTypeErf: true, compute.OpTypePow: true,
	compute.OpTypeRem: true, compute.OpTypeIsNaN: true, compute.OpTypeIsFinite: true,
	compute.OpTypeBitwiseAnd: true, compute.OpTypeBitwiseOr: true, compute.OpTypeBitwiseXor: true,
	compute.OpTypeBitwiseNot: true, compute.OpTypeLogicalAnd: true, compute.OpTypeLogicalOr: true,
	compute.OpTypeLogicalXor: true, compute.OpTypeLogicalNot: true,
}

// SumChunk is the length of the pieces of a long row. The sum of a row is the sum of the sums of its pieces: a row that
// is longer than one is summed by several workers, and the result does not depend on how many.
const SumChunk = 1 << 15

// CanPack reports whether tensors of a shape can be packed matrices.
func CanPack(s shapes.Shape) bool {
	return (s.DType == dtypes.Float32 || s.DType == dtypes.BFloat16) && s.Rank() == 2
}
