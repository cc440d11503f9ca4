package ir

import (
	"unsafe"

	"github.com/gomlx/compute/dtypes"
)

// Memory says what memory a tensor is in.
type Memory int

// The kinds of memory.
const (
	InArena    Memory = iota // of the run; offset says where
	InInput                  // index says which
	InOutput                 // index says which
	InConstant               // data points to it
	InNothing                // it exists in the registers of a loop, or in a tile of attention only
)

// Tensor is what steps write and read, in row-major order.
type Tensor struct {
	ID     int // index in the list of the plan
	DType  dtypes.DType
	Size   int // bytes of an element
	Count  int // elements
	Dims   []int
	Memory Memory
	Index  int
	Offset int // bytes
	Data   unsafe.Pointer

	Tile    int  // of fused attention, which it is in: 1 or 2; 0 for none
	Virtual bool // it is in a tile only
}

// Bytes is the size of a tensor.
func (t *Tensor) Bytes() int { return t.Size * t.Count }
