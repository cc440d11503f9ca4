package cpu

import (
	"unsafe"

	"github.com/gomlx/compute/dtypes"
)

// memoryKind says what memory a tensor is in.
type memoryKind int

const (
	inArena    memoryKind = iota // of the run; offset says where
	inInput                      // index says which
	inOutput                     // index says which
	inConstant                   // data points to it
	inNothing                    // it exists in the registers of a loop, or in a tile of attention only
)

// tensor is what steps write and read, in row-major order.
type tensor struct {
	id     int // index in the list of the plan
	kind   dtypes.DType
	size   int // bytes of an element
	count  int // elements
	dims   []int
	memory memoryKind
	index  int
	offset int // bytes
	data   unsafe.Pointer

	tile    int  // of fused attention, which it is in: 1 or 2; 0 for none
	virtual bool // it is in a tile only
}

// bytes is the size of a tensor.
func (t *tensor) bytes() int { return t.size * t.count }
