package cpu

import (
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
	owner *function
}

// Attributes of operations.
type (
	parameter struct {
		name  string
		index int
	}
	constant  struct{ data []byte }
	broadcast struct{ axes []int } // axes of the output that the axes of the input go to
	permute   struct{ axes []int } // axes of the input, in the order of the output
	region    struct{ starts, strides []int }
	reduce    struct{ axes []int } // sorted
	axis      struct{ axis int }
	padding   struct{ axes []compute.PadAxis }
	reversed  struct{ axes []int }
	argument  struct {
		axis  int
		isMin bool
	}
	cumulative struct {
		axis    int
		options compute.CumSumOptions
	}
	product struct{ contract, batch [2][]int } // axes of the left and of the right side
	gather  struct {
		vector                          int
		offsets, collapsed, start, size []int
	}
	scatter struct {
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
