package gemm

import "unsafe"

// rightSide is where a panel of B is. Strides are bytes.
type rightSide struct {
	at    unsafe.Pointer
	row   int  // from a row to the next
	step  int  // from a panel to the next
	ahead int  // from a row to one that is needed later
	half  bool // bfloat16

	early     int // from a row to one that is needed after that
	earlyStep int // and from there to the next line of memory that is prefetched early; 0: nothing is
}

// panelAt is a panel whose rows follow one another.
func panelAt(data []float32) rightSide {
	return rightSide{at: unsafe.Pointer(&data[0]), row: 4 * panel, ahead: bytesAhead}
}

// right is the block's part of the panel of B at column j. Where that takes a copy it may compute groups of rows of C
// on the way; it returns how many.
func (b *block) right(left leftSide, j, width int) (rightSide, int) {
	p, v := b.b.packed, b.b.view
	switch {
	case p != nil && !b.b.transposed && (p.full != nil || p.half != nil && b.level.half != nil && b.mb <= 2*b.level.rows):
		return b.packedPanel(j), 0
	case p == nil && v.Col == 1 && width > panel:
		r := b.inPlace(j)
		r.ahead = wideAhead * r.row
		return r, 0
	case p == nil && v.Col == 1 && width == panel:
		return b.inPlace(j), 0
	case b.transposes() && width >= transposeSize:
		return b.transposeRight(left, j, width, b.mb <= b.level.rows), 1
	}
	dst := b.s.b.take(b.kc * panel)
	b.copyPanel(dst, j, width)
	r := panelAt(dst)
	if p == nil && v.Row == 1 && v.Col == b.kc { // its columns follow one another, and kernels prefetch those of the next
		here := unsafe.Pointer(&v.Data[b.k0+(b.j0+j)*v.Col])
		r.ahead = int(uintptr(here)-uintptr(r.at)) + 4*width*v.Col
	}
	return r, 0
}

// transposes reports whether B's columns are contiguous and the kernels for that take them.
func (b *block) transposes() bool {
	v := b.b.view
	return b.b.packed == nil && v.Row == 1 && v.Col != 1 && b.level.transB != nil && b.kc >= transposeSize
}

// width is how many columns are computed at once, n at most: a panel, or more where that needs no copy.
func (b *block) width(n int) int {
	most := panel
	switch v := b.b.view; {
	case b.transposes() && b.mb <= b.level.rows && b.kc%transposeSize == 0:
		most = max(1, transposeBytes/(4*panel*b.kc)) * panel
	case b.b.packed == nil && v.Col == 1 && n >= b.level.wideFor(b.mb):
		most = max(most, b.level.wideFor(b.mb))
	}
	return min(most, n)
}

// packedPanel is a panel of a packed matrix.
func (b *block) packedPanel(j int) rightSide {
	p := b.b.packed
	first, next := p.index(b.k0, b.j0+j), b.nextPanel(j)
	r := rightSide{row: 4 * panel, ahead: bytesAhead}
	if p.half == nil {
		r.at = unsafe.Pointer(&p.full[first])
	} else {
		r.at, r.row, r.half = unsafe.Pointer(&p.half[first]), 2*panel, true
	}
	most := b.level.oneStage
	if r.half {
		most = b.level.oneStageHalf
	}
	passes := ceil(b.mb, b.level.rows)
	switch {
	case b.mb <= most:
		r.ahead = b.level.near
		return r
	case passes == 1:
		r.early = bytesEarly
	case next >= 0 && !b.rowsOuter: // each pass prefetches its share of the next panel
		r.early = (next - first) / panel * r.row
	default:
		return r
	}
	r.earlyStep = min(r.row*b.level.columns/panel, 64) / passes
	return r
}

// nextPanel is where the part of a packed matrix is that is needed after the panel at column j; -1: nowhere.
func (b *block) nextPanel(j int) int {
	if j += panel; j < b.nb {
		return b.b.packed.index(b.k0, b.j0+j)
	}
	if k := b.k0 + b.kc; k < b.k {
		return b.b.packed.index(k, b.j0)
	}
	return -1
}

// inPlace is a panel of a matrix whose rows are contiguous.
func (b *block) inPlace(j int) rightSide {
	v := b.b.view
	at := unsafe.Pointer(&v.Data[b.k0*v.Row+b.j0+j])
	return rightSide{at: at, row: 4 * v.Row, step: 4 * panel, ahead: rowsAhead * 4 * v.Row}
}

// transposeRight computes the first group of rows of columns [j, j+width), which are contiguous, and copies them on the
// way unless there are no other rows. Kernels take 16 rows and columns of B at once; what is left is copied first.
func (b *block) transposeRight(left leftSide, j, width int, single bool) rightSide {
	run := splitRows(b.mb, b.level.rows)[0]
	run.count = 1
	dst := b.s.b.take(b.kc * panel)
	whole, most := width/transposeSize*transposeSize, b.kc/transposeSize*transposeSize
	b.transposeTiles(left, run, rightPart{j, whole, most}, dst, single)
	if most < b.kc {
		b.copyPart(dst, j, 0, whole, most)
		b.setTile(left, run, j, panelAt(dst))
		t := &b.s.tile
		t.a, t.b, t.k, t.mode = unsafe.Add(t.a, most*t.aCol), unsafe.Add(t.b, most*t.bRow), b.kc-most, resume
		b.level.tiles(b.s, whole, false)
	}
	if whole < width {
		at := whole % panel
		b.copyPart(dst, j+whole-at, at, width-whole, 0)
		b.setTile(left, run, j+whole, panelAt(dst[at:]))
		b.level.tiles(b.s, width-whole, false)
	}
	return panelAt(dst)
}

// rightPart is some columns of the block's part of B from one on, and rows from the first one on.
type rightPart struct{ j, columns, k int }

// transposeTiles computes whole tiles, and copies what they transpose unless they are the only ones.
func (b *block) transposeTiles(left leftSide, run tileRun, p rightPart, dst []float32, single bool) {
	v := b.b.view
	b.setTile(left, run, p.j, rightSide{at: unsafe.Pointer(&v.Data[b.k0+(b.j0+p.j)*v.Col]), row: 4 * v.Col})
	t := &b.s.tile
	t.k, t.count = p.k, p.columns/transposeSize
	t.cStep, t.bStep, t.ahead = 4*transposeSize, 4*transposeSize*v.Col, 4*transposeSize*v.Col
	if v.Col == b.kc {
		t.aheadStep = 4 * transposeSize * transposeSize
	}
	t.keep = unsafe.Pointer(unsafe.SliceData(dst))
	if !single {
		t.keepRows, t.keepStep = 4*panel*transposeSize, 4*transposeSize
	}
	if p.k <= Block {
		b.level.transB(t)
		return
	}
	whole := *t
	for i := range whole.count { // a tile at a time: its columns are contiguous
		for at := 0; at < p.k; at += Block {
			*t = whole
			t.a, t.b, t.c = unsafe.Add(t.a, at*t.aCol), unsafe.Add(t.b, i*t.bStep+4*at), unsafe.Add(t.c, i*t.cStep)
			t.k, t.count = min(Block, p.k-at), 1
			if at > 0 {
				t.mode = added
			}
			if t.aheadStep > 0 {
				t.ahead += at/transposeSize*t.aheadStep - 4*at
			}
			t.keep = unsafe.Add(t.keep, i*t.keepStep+at/transposeSize*t.keepRows)
			b.level.transB(t)
		}
	}
}

// ragged reports whether kernels that transpose B leave a few rows of the last block of the contracted axis to others.
func (b *block) ragged() bool { return b.transposes() && b.k0+b.kc == b.k && b.k%transposeSize != 0 }

// copyPart copies rows of a panel from one on, of so many columns from one on; the panel begins with column j.
func (b *block) copyPart(dst []float32, j, at, columns, row int) {
	v := b.b.view
	src := View{v.Data[b.k0+row+(b.j0+j+at)*v.Col:], 1, v.Col}
	b.level.pack(b.s, lines{dst: Out{dst[row*panel+at:], panel}, src: src, k: b.kc - row, width: columns})
}

// part is contiguous memory.
type part struct {
	at    unsafe.Pointer
	bytes int
}

// part is some rows of the panel with a column, of a matrix of float32.
func (p *Packed) part(row, rows, column int) part {
	return part{unsafe.Pointer(&p.full[p.index(row, column)]), 4 * rows * panel}
}

// rightAll is all whole panels of the block's part of B, and the last one if it is not whole.
func (b *block) rightAll() (all, last rightSide) {
	whole, rest := b.nb/panel*panel, b.nb%panel
	if b.b.ready() {
		all, _ = b.right(leftSide{}, 0, panel)
		all.step = 4 * panel * b.b.packed.K
		if rest > 0 {
			last, _ = b.right(leftSide{}, whole, rest)
		}
		return all, last
	}
	dst := b.s.b.take(panels(b.nb) * panel * b.kc)
	for j := 0; j < whole; j += panel {
		b.copyPanel(dst[j*b.kc:][:panel*b.kc], j, panel)
	}
	all = panelAt(dst)
	all.step = 4 * panel * b.kc
	if rest > 0 {
		dst = dst[whole*b.kc:]
		b.copyPanel(dst, whole, rest)
		last = panelAt(dst)
	}
	return all, last
}

// copyPanel copies a panel of the block's part of B, and prefetches the next; columns that do not exist are 0.
func (b *block) copyPanel(dst []float32, j, width int) {
	j += b.j0
	if width < panel {
		clear(dst)
	}
	p, v := b.b.packed, b.b.view
	switch {
	case p == nil:
		src := View{v.Data[b.k0*v.Row+j*v.Col:], v.Row, v.Col}
		b.level.pack(b.s, lines{dst: Out{dst, panel}, src: src, k: b.kc, width: width, ahead: panel * v.Col})
	case b.b.transposed:
		b.transposePanels(dst, p, j, width)
	case p.full != nil:
		copy(dst, p.full[p.index(b.k0, j):])
	case p.quantized != nil:
		b.dequantize(dst[:b.kc*panel], p, b.k0, j)
	default:
		b.level.widen(dst, p.half[p.index(b.k0, j):][:len(dst)])
	}
}

// transposePanels sets dst to a panel of the transpose of a packed matrix: columns [j, j+width) are rows of p, and the
// contracted axis goes through the panels of p.
func (b *block) transposePanels(dst []float32, p *Packed, j, width int) {
	k := 0
	if b.level.blocks != nil && p.full != nil && width == panel && b.k0%panel == 0 && b.kc >= panel {
		k = b.kc / panel * panel
		b.s.packing = packing{
			dst: unsafe.Pointer(&dst[0]), src: unsafe.Pointer(&p.full[p.index(j, b.k0)]),
			srcLine: 4 * panel * p.K, k: k / panel,
		}
		b.level.blocks(&b.s.packing)
	}
	for k < b.kc {
		at := b.k0 + k
		n := min(panel-at%panel, b.kc-k)
		from := p.index(j, at)
		size := (width-1)*panel + n // from the middle of a line: the lines that follow are whole
		src := b.s.wide[:]
		switch {
		case p.full != nil:
			src = p.full[from:]
		case p.quantized != nil:
			b.dequantize(src[:width*panel], p, j, at)
			if b.level.blocks != nil && width == panel && n == panel {
				b.s.packing = packing{dst: unsafe.Pointer(&dst[k*panel]), src: unsafe.Pointer(&src[0]), k: 1}
				b.level.blocks(&b.s.packing)
				k += n
				continue
			}
			src = src[at%panel:]
		default:
			b.level.widen(src[:size], p.half[from:from+size])
		}
		to := Out{dst[k*panel:], panel}
		b.level.pack(b.s, lines{dst: to, src: View{src, 1, panel}, k: n, width: width, ahead: p.K * panel})
		k += n
	}
}
