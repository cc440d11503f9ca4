package gemm

import (
	"sync"

	"github.com/goart-dev/art/backend/device/cpu/internal/pages"
)

// scratch is what a worker needs for a task.
type scratch struct {
	whole   call // a call, if no other worker reads it
	member  call // and that for a member of its batch
	tile    tile
	packing packing
	a, b, c buffer
	scaling scaling
	coded   coded
	scales  buffer
	integer integerScratch
	sums    buffer                 // of a block of the contracted axis that is computed in pieces
	edge    [512]float32           // a tile that reaches out of C
	wide    [panel * panel]float32 // bfloat16 numbers, widened
}

// buffer is memory that is kept from a task to the next.
type buffer struct{ data []float32 }

// take returns n numbers of any value.
func (b *buffer) take(n int) []float32 {
	if cap(b.data) < n {
		bytes := 4 * max(n, leastNumbers)
		if n >= hugeNumbers {
			bytes = ceil(bytes, pages.Huge) * pages.Huge
		}
		b.data = floats(pages.New(bytes, n >= hugeNumbers), bytes/4)
	}
	return b.data[:n]
}

// scratches are those that no worker uses.
type scratches struct{ pool sync.Pool }

func (f *scratches) get() *scratch {
	if s, ok := f.pool.Get().(*scratch); ok {
		return s
	}
	return new(scratch)
}

// put keeps a scratch, without the pointers into the operands.
func (f *scratches) put(s *scratch) {
	s.whole, s.member, s.tile, s.packing = call{}, call{}, tile{}, packing{}
	s.scaling, s.coded = scaling{}, coded{}
	s.integer = integerScratch{codes: s.integer.codes}
	f.pool.Put(s)
}
