package gemm

import "unsafe"

// leftSide is a block of A, as it is or packed: the rows of a tile side by side.
type leftSide struct {
	data     []float32
	row, col int
	packed   bool
	first    int // row of the block that the data begin with
}

// rows sets where the rows of a run are.
func (l *leftSide) rows(t *tile, run rows, k int) {
	at := run.at - l.first
	if l.packed {
		t.a, t.aRow, t.aCol, t.aStep = unsafe.Pointer(&l.data[at*k]), 4, 4*run.each, 4*run.each*k
		return
	}
	t.a, t.aRow, t.aCol, t.aStep = unsafe.Pointer(&l.data[at*l.row]), 4*l.row, 4*l.col, 4*run.each*l.row
}

// left is all rows of the block's part of A.
func (b *block) left() leftSide {
	if !b.packA {
		return b.leftGroup(0, b.mb)
	}
	if b.a.Col == 1 {
		return b.copyLeft(0, b.mb)
	}
	dst := b.s.a.take(b.mb * b.kc)
	for _, run := range groups(b.mb, b.level.rows) {
		for i := range run.count {
			at := run.at + i*run.each
			b.packLeft(dst[at*b.kc:], at, run.each)
		}
	}
	return leftSide{data: dst, packed: true}
}

// leftGroup is a group of rows of the block's part of A.
func (b *block) leftGroup(at, n int) leftSide {
	if !b.packA {
		return leftSide{b.a.Data[(b.i0+at)*b.a.Row+b.k0*b.a.Col:], b.a.Row, b.a.Col, false, at}
	}
	if b.a.Col == 1 {
		return b.copyLeft(at, n)
	}
	dst := b.s.a.take(n * b.kc)
	b.packLeft(dst, at, n)
	return leftSide{data: dst, packed: true, first: at}
}

// copyLeft copies rows whose numbers lie together. Kernels read all rows of a tile at once, and in A they are often a power of
// two apart, where a cache has room for few of them.
func (b *block) copyLeft(at, n int) leftSide {
	line := ceil(b.kc, 16)*16 + 16
	if line%256 == 0 {
		line += 16
	}
	dst := b.s.a.take(n * line)
	for i := range n {
		copy(dst[i*line:][:b.kc], b.a.Data[(b.i0+at+i)*b.a.Row+b.k0:])
	}
	return leftSide{data: dst, row: line, col: 1, first: at}
}

// packLeft packs a group of rows, and fetches the next.
func (b *block) packLeft(dst []float32, at, n int) {
	src := View{b.a.Data[(b.i0+at)*b.a.Row+b.k0*b.a.Col:], b.a.Col, b.a.Row}
	b.level.pack(b.s, dst, n, src, b.kc, n, n*b.a.Row)
}
