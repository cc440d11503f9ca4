package ir

import (
	"slices"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
)

// Node is an operation of a graph. Nodes are numbered in the order in which they were made: inputs come first.
type Node struct {
	ID    int
	Op    compute.OpType
	Shape shapes.Shape
	In    []*Node
	Attr  any // what else the operation takes: one of the types below, or nil
}

// Attributes of operations.
type (
	// ParameterAttr is that of a parameter.
	ParameterAttr struct{ Name string }
	// ConstantAttr is that of a constant: its bytes, in row-major order.
	ConstantAttr struct{ Data []byte }
	// BroadcastAttr has the axes of the output that the axes of the input go to.
	BroadcastAttr struct{ Axes []int }
	// TransposeAttr has the axes of the input, in the order of the output.
	TransposeAttr struct{ Axes []int }
	// SliceAttr says where a slice begins, and which elements it takes.
	SliceAttr struct{ Starts, Strides []int }
	// ReduceAttr has the axes that are reduced, sorted.
	ReduceAttr struct{ Axes []int }
	// AxisAttr is the axis of a concatenation or an iota.
	AxisAttr struct{ Axis int }
	// PadAttr says how each axis is padded.
	PadAttr struct{ Axes []compute.PadAxis }
	// ReverseAttr has the axes that are reversed.
	ReverseAttr struct{ Axes []int }
	// ArgMinMaxAttr has the axis that is searched, and whether for the least element.
	ArgMinMaxAttr struct {
		Axis  int
		IsMin bool
	}
	// CumSumAttr has the axis along which is summed.
	CumSumAttr struct {
		Axis    int
		Options compute.CumSumOptions
	}
	// MatmulAttr has the axes of the left and of the right operand that are contracted, and those of the batch.
	MatmulAttr struct{ Contract, Batch [2][]int }
	// GatherAttr is that of a gather, in the terms of StableHLO.
	GatherAttr struct {
		Vector                          int
		Offsets, Collapsed, Start, Size []int
	}
	// ScatterAttr is that of a scatter, in the terms of StableHLO.
	ScatterAttr struct {
		Vector                   int
		Window, Inserted, Target []int
		Replaces                 bool // windows are replaced, not combined
	}
	// GroupedAttr is that of OpGrouped.
	GroupedAttr struct{ Transposed bool }
)

// Operations that a builder makes of several.
const (
	// OpGrouped is rows x [..., inner] times matrices of their own: its operands are x, ids [..., 1], and matrices
	// [columns, inner], or all of them in one [matrices, columns, inner]. If it is transposed, [inner, columns].
	OpGrouped compute.OpType = compute.OpTypeLast + iota
	// OpGroupedOuter is the gradient of these matrices: of x [..., columns], ids [..., 1] and y [..., rows], the sums of
	// yᵀx over those with an id, [matrices, rows, columns]. Ids of no matrix are left out.
	OpGroupedOuter
)

// DataTypes are those that a tensor may have.
var DataTypes = map[dtypes.DType]bool{
	dtypes.Float32: true, dtypes.Float64: true, dtypes.BFloat16: true,
	dtypes.Int8: true, dtypes.Int16: true, dtypes.Int32: true, dtypes.Int64: true,
	dtypes.Uint8: true, dtypes.Uint16: true, dtypes.Uint32: true, dtypes.Uint64: true, dtypes.Bool: true,
}

// OfMatrix reports whether a matmul has a plain matrix on its right.
func (p MatmulAttr) OfMatrix() bool { return len(p.Contract[1]) == 1 && len(p.Batch[1]) == 0 }

// OfRows reports whether whole rows of a matrix are gathered, and written one after another: out is the rank of the
// result.
func (g GatherAttr) OfRows(columns, out int) bool {
	return slices.Equal(g.Start, []int{0}) && slices.Equal(g.Collapsed, []int{0}) && g.Size[1] == columns &&
		slices.Equal(g.Offsets, []int{out - 1})
}
