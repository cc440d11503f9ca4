package cpu

import (
	"slices"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
)

// node is an operation of a graph. Nodes are numbered in the order in which they were made: inputs come first.
type node struct {
	id    int
	op    compute.OpType
	shape shapes.Shape
	in    []*node
	attr  any // what else the operation takes: one of the types below, or nil
}

// Attributes of operations.
type (
	parameterAttr struct{ name string }
	constantAttr  struct{ data []byte }
	broadcastAttr struct{ axes []int } // axes of the output that the axes of the input go to
	transposeAttr struct{ axes []int } // axes of the input, in the order of the output
	sliceAttr     struct{ starts, strides []int }
	reduceAttr    struct{ axes []int } // sorted
	axisAttr      struct{ axis int }
	padAttr       struct{ axes []compute.PadAxis }
	reverseAttr   struct{ axes []int }
	argMinMaxAttr struct {
		axis  int
		isMin bool
	}
	cumSumAttr struct {
		axis    int
		options compute.CumSumOptions
	}
	matmulAttr struct{ contract, batch [2][]int } // axes of the left and of the right side
	gatherAttr struct {
		vector                          int
		offsets, collapsed, start, size []int
	}
	scatterAttr struct {
		vector                   int
		window, inserted, target []int
	}
)

// dataTypes are those that a tensor may have.
var dataTypes = map[dtypes.DType]bool{
	dtypes.Float32: true, dtypes.Float64: true, dtypes.BFloat16: true,
	dtypes.Int8: true, dtypes.Int16: true, dtypes.Int32: true, dtypes.Int64: true,
	dtypes.Uint8: true, dtypes.Uint16: true, dtypes.Uint32: true, dtypes.Uint64: true, dtypes.Bool: true,
}

// ofMatrix reports whether a matmul has a plain matrix on its right.
func (p matmulAttr) ofMatrix() bool { return len(p.contract[1]) == 1 && len(p.batch[1]) == 0 }

// ofRows reports whether whole rows of a matrix are gathered, and written one after another: out is the rank of the result.
func (g gatherAttr) ofRows(columns, out int) bool {
	return slices.Equal(g.start, []int{0}) && slices.Equal(g.collapsed, []int{0}) && g.size[1] == columns &&
		slices.Equal(g.offsets, []int{out - 1})
}
