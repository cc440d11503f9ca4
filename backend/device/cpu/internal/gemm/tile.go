package gemm

import (
	"unsafe"

	"github.com/goart-dev/art/backend/device/cpu/internal/fma"
)

// tile tells a kernel to compute a row of tiles: blocks of C that fit into registers. Strides are bytes.
type tile struct {
	a, b, c    unsafe.Pointer
	rows       int // of a tile: it chooses the kernel
	aRow, aCol int // from a row and a column of A to the next
	bRow       int // the columns of B are contiguous; of kernels that transpose B from a column to the next
	cRow       int // and so are those of C
	k          int // length of the contracted axis, at least 1
	count      int // number of tiles, at least 1; kernels may change it, and k

	// From a tile to the next. For broad kernels bStep is from a panel to the next, and aStep is 0; for stream kernels
	// bStep is from k rows of B to the next k.
	aStep, bStep, cStep int

	// Prefetch distances.
	ahead            int // from a row of B to one that is needed later; of kernels that transpose B from b to what follows
	aheadStep        int // and how much of that goes with 16 rows
	early, earlyStep int // from b to what is needed after that, and the step to its next cache line

	// Of broad kernels: rows of C that are prefetched, rounds of four columns of A before the first one, and from one to
	// the next.
	cRows, cFirst, cEach int

	mode mode // what chains begin with, and where they go

	// Of kernels that transpose B: where the copy goes, in rows of a panel, from 16 of its rows to the next, and from a
	// tile to the next.
	keep               unsafe.Pointer
	keepRows, keepStep int

	lanes int // columns of C that exist, as bits; kernels without masks are called for full tiles only
}

// mode says what chains begin with, and where they go. Kernels know the numbers.
type mode int

const (
	fresh  mode = iota // they begin with +0 and replace C
	resume             // they go on from C, which is what a piece of their block came to, and replace it
	added              // they begin with +0 and are added to C, the sum of the blocks before
)

// prefetchC lets a broad kernel prefetch its rows of C, in the last two thirds of the tile.
func (t *tile) prefetchC(rows int) {
	rounds := t.k / 4
	t.cFirst = rounds
	if rounds >= rows {
		t.cRows, t.cEach = rows, max(1, 2*rounds/(3*rows))
		t.cFirst -= t.cRows * t.cEach
	}
}

// blocks calls a kernel for each of the fixed blocks of the contracted axis: the first one as the tile says, others are
// added to C. Tile after tile, so that B is read on and on. prefetched is how many bytes are prefetched early with a
// column of A.
func (t *tile) blocks(call kernel, prefetched int) {
	if t.k <= Block {
		call(t)
		return
	}
	whole := *t
	for i := range whole.count {
		for at := 0; at < whole.k; at += Block {
			t.a, t.b = unsafe.Add(whole.a, i*t.aStep+at*t.aCol), unsafe.Add(whole.b, i*t.bStep+at*t.bRow)
			t.c, t.k, t.count = unsafe.Add(whole.c, i*t.cStep), min(Block, whole.k-at), 1
			t.early = whole.early + (i*whole.k+at)*prefetched - i*t.bStep - at*t.bRow
			t.mode = added
			if at == 0 {
				t.mode = whole.mode
			}
			call(t)
		}
	}
	t.a, t.b, t.c, t.k, t.count, t.early, t.mode = whole.a, whole.b, whole.c, whole.k, whole.count, whole.early, whole.mode
}

// kernel computes tiles; the number of columns is its own.
type kernel func(t *tile)

// floats is a slice of n numbers at p.
func floats(p unsafe.Pointer, n int) []float32 { return unsafe.Slice((*float32)(p), n) }

// fullPortable is the kernel in Go.
func fullPortable(t *tile) {
	for i := range t.count {
		a, b, c := unsafe.Add(t.a, i*t.aStep), unsafe.Add(t.b, i*t.bStep), unsafe.Add(t.c, i*t.cStep)
		for r := range t.rows {
			chains(t, unsafe.Add(a, r*t.aRow), b, floats(unsafe.Add(c, r*t.cRow), panel))
		}
	}
}

// chains computes a row of a tile.
func chains(t *tile, a, b unsafe.Pointer, c []float32) {
	var space [panel]float32
	sums := space[:len(c)]
	if t.mode == resume {
		copy(sums, c)
	}
	for k := range t.k {
		x := *(*float32)(unsafe.Add(a, k*t.aCol))
		for j, y := range floats(unsafe.Add(b, k*t.bRow), len(c)) {
			sums[j] = fma.Float32(x, y, sums[j])
		}
	}
	if t.mode == added {
		for j, old := range c {
			sums[j] += old
		}
	}
	copy(c, sums)
}
