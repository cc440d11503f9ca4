package gemm

import "unsafe"

// scaling tells a kernel to make float32 scales of those of some tiles of a quantized matrix.
type scaling struct {
	dst         unsafe.Pointer // [tiles][groups][2][32]float32: d·s and −m·n of each column
	tile        unsafe.Pointer // the first
	m, s, n     int            // bytes into a tile, 0: there are none
	tiles, step int            // number of tiles, and bytes from one to the next
	ahead       int            // from a tile to one that is needed later
	groups      int            // of a tile
	bfloat16    int            // of d: 1, or 0 for float16
}

// coded tells a kernel to go through the codes of a panel of a quantized matrix: to store their numbers in rows of 32
// at c, or to multiply rows of A, whose numbers are contiguous, by them.
type coded struct {
	a, c          unsafe.Pointer
	aRow, cRow    int            // bytes from a row to the next
	codes, fifths unsafe.Pointer // of the first tile
	scales        unsafe.Pointer // of scaling
	table, small  unsafe.Pointer // the numbers of codes: [32]float32, and [32]int8
	tiles         int
	groups, lines int // of a tile, and of a group: 128 bytes of codes each
	step          int // bytes from the end of a tile's codes to the next tile's
	fifthStep     int // and the same for fifth bits
	panel         int // bytes from a panel to the next, of kernels for two,
	scalesPanel   int // and of its scales,
	ahead         int // and from codes to those that are needed later
	mode          mode
	lanes         int // columns of C that exist, as bits
	// kernel is, of dequantizing, 0, 1 and 2 for 4, 5 and 8 bits; of multiplying that times 1 more than the most rows, and
	// the number of rows, or 0 for one row and two panels.
	kernel int
}
