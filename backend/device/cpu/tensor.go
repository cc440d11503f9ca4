package cpu

import (
	"slices"
	"unsafe"

	"github.com/gomlx/compute/dtypes"
)

// place says what memory a tensor lies in.
type place int

const (
	inArena    place = iota // of the run; offset says where
	inInput                 // index says which
	inOutput                // index says which
	inConstant              // data points to it
)

// tensor is memory that steps write and read, rows first.
type tensor struct {
	id     int
	kind   dtypes.DType
	size   int // bytes of an element
	count  int // elements
	place  place
	index  int
	offset int
	data   unsafe.Pointer
	matrix []int // dimensions of an input

	tile    int  // of a chain, in which it lies: 1 or 2; 0 for none
	virtual bool // it lies in a tile only

	writer      *unit // nil for inputs and constants
	outside     bool  // something but its writer reads it
	first, last int   // steps at which it is written, and read last
}

func (t *tensor) bytes() int { return t.size * t.count }

// arena gives tensors that live at the same time different memory. It returns the size of it all.
func arena(tensors []*tensor) int {
	var order []*tensor
	for _, t := range tensors {
		if t.place == inArena && t.writer != nil && t.outside && !t.virtual {
			order = append(order, t)
		}
	}
	slices.SortStableFunc(order, func(a, b *tensor) int { return b.bytes() - a.bytes() }) // large ones first
	total := 0
	var placed []*tensor // by offset
	for _, t := range order {
		t.offset = gap(placed, t)
		total = max(total, t.offset+rounded(t.bytes()))
		at, _ := slices.BinarySearchFunc(placed, t.offset, func(p *tensor, off int) int { return p.offset - off })
		placed = slices.Insert(placed, at, t)
	}
	return total
}

// gap returns the lowest offset at which t fits between the tensors that live when it does.
func gap(placed []*tensor, t *tensor) int {
	off := 0
	for _, p := range placed {
		if p.last < t.first || t.last < p.first {
			continue
		}
		if p.offset >= off+rounded(t.bytes()) {
			break
		}
		off = max(off, p.offset+rounded(p.bytes()))
	}
	return off
}
