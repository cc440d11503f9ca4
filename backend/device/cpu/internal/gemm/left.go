package gemm

import "unsafe"

// leftSide is a block of A, as it is or packed: the rows of a tile side by side.
type leftSide struct {
	data     []float32
	row, col int
	packed   bool
	first    int // row of the block that the data begin with
}

// setTile sets where a kernel finds the rows of A of a run.
func (l *leftSide) setTile(t *tile, run tileRun, k int) {
	at := run.row - l.first
	if l.packed {
		t.a, t.aRow, t.aCol, t.aStep = unsafe.Pointer(&l.data[at*k]), 4, 4*run.height, 4*run.height*k
		return
	}
	t.a, t.aRow, t.aCol, t.aStep = unsafe.Pointer(&l.data[at*l.row]), 4*l.row, 4*l.col, 4*run.height*l.row
}

// left is all rows of the block's part of A. Kernels that transpose B take them packed.
func (b *block) left() leftSide {
	switch {
	case b.transposes() && b.mb <= b.level.rows && (b.mb == 1 || b.a.Row == 1) && b.a.Col == b.mb: // as if it were packed
		left := b.inPlaceLeft(0)
		left.packed = true
		return left
	case !b.packA && !b.transposes():
		return b.inPlaceLeft(0)
	case b.a.Col == 1 && !b.transposes():
		// Kernels read all rows of a tile at once, and in A they are often a power of two apart, where a cache has room
		// for few of them.
		line := ceil(b.kc, 16)*16 + 16
		if line%256 == 0 {
			line += 16
		}
		dst := b.s.a.take(b.mb * line)
		for i := range b.mb {
			copy(dst[i*line:][:b.kc], b.a.Data[(b.i0+i)*b.a.Row+b.k0:])
		}
		return leftSide{data: dst, row: line, col: 1}
	}
	dst := b.s.a.take(b.mb * b.kc)
	for _, run := range splitRows(b.mb, b.level.rows) {
		for i := range run.count {
			at := run.row + i*run.height
			b.packLeft(dst[at*b.kc:], at, run.height)
		}
	}
	return leftSide{data: dst, packed: true}
}

// inPlaceLeft is the rows of the block's part of A from one on, as they are.
func (b *block) inPlaceLeft(at int) leftSide {
	return leftSide{b.a.Data[(b.i0+at)*b.a.Row+b.k0*b.a.Col:], b.a.Row, b.a.Col, false, at}
}

// packLeft packs a group of rows, and prefetches the next.
func (b *block) packLeft(dst []float32, at, n int) {
	src := View{b.a.Data[(b.i0+at)*b.a.Row+b.k0*b.a.Col:], b.a.Col, b.a.Row}
	b.level.pack(b.s, lines{dst: Out{dst, n}, src: src, k: b.kc, width: n, ahead: n * b.a.Row})
}
