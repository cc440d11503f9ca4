package gemm

import "unsafe"

// rows is a run of groups of rows, each of which is a tile high.
type rows struct{ at, each, count int }

// groups cuts rows into groups of at most so many that are as even as possible: each takes as long as the next.
func groups(m, most int) [2]rows {
	n := ceil(m, most)
	low, more := m/n, m%n
	return [2]rows{{0, low + 1, more}, {more * (low + 1), low, n - more}}
}

// block computes rows [i0, i0+mb) and columns [j0, j0+nb) of C, which are c.
func (g *product) block(s *scratch, i0, mb, j0, nb int, c View) {
	if g.k == 0 && !g.add {
		for i := range mb {
			clear(c.Data[i*c.Row : i*c.Row+nb])
		}
	}
	for k0 := 0; k0 < g.k; k0 += g.kb {
		b := blockOf{g, s, i0, mb, j0, nb, k0, min(g.kb, g.k-k0), c}
		b.down()
	}
}

// blockOf is a block of C and of the contracted axis.
type blockOf struct {
	*product
	s      *scratch
	i0, mb int
	j0, nb int
	k0, kc int
	out    View
}

// down goes through the panels of B, and for each through all rows of A.
func (b *blockOf) down() {
	t := &b.s.tile
	left := b.left()
	for j := 0; j < b.nb; j += panel {
		width := min(panel, b.nb-j)
		right := b.right(j, width)
		for _, run := range groups(b.mb, b.level.rows) {
			if run.count == 0 {
				continue
			}
			*t = tile{
				b: right.at, bRow: right.row, ahead: right.ahead, k: b.kc,
				c: unsafe.Pointer(&b.out.Data[run.at*b.out.Row+j]), cRow: 4 * b.out.Row, cStep: 4 * run.each * b.out.Row,
				count: run.count,
			}
			if b.add || b.k0 > 0 {
				t.load = 1
			}
			left.rows(t, run, b.kc)
			b.level.tiles(b.s, run.each, width, right.half)
		}
	}
}

// leftSide is a block of A, as it is or packed: the rows of a tile side by side.
type leftSide struct {
	data     []float32
	row, col int
	packed   bool
}

// rows sets where the rows of a run are.
func (l *leftSide) rows(t *tile, run rows, k int) {
	if l.packed {
		t.a, t.aRow, t.aCol, t.aStep = unsafe.Pointer(&l.data[run.at*k]), 4, 4*run.each, 4*run.each*k
		return
	}
	t.a, t.aRow, t.aCol, t.aStep = unsafe.Pointer(&l.data[run.at*l.row]), 4*l.row, 4*l.col, 4*run.each*l.row
}

// left is the block's part of A.
func (b *blockOf) left() leftSide {
	a := View{b.a.Data[b.i0*b.a.Row+b.k0*b.a.Col:], b.a.Row, b.a.Col}
	if !b.packA {
		return leftSide{a.Data, a.Row, a.Col, false}
	}
	dst := b.s.a.take(b.mb * b.kc)
	for _, run := range groups(b.mb, b.level.rows) {
		for i := range run.count {
			at := run.at + i*run.each
			b.level.pack(b.s, dst[at*b.kc:], run.each, View{a.Data[at*a.Row:], a.Col, a.Row}, b.kc, run.each, 0)
		}
	}
	return leftSide{dst, 0, 0, true}
}

// rightSide is where a panel of B is. Strides are bytes.
type rightSide struct {
	at    unsafe.Pointer
	row   int
	ahead int
	half  bool
}

// right is the block's part of a panel of B, at column j of the block.
func (b *blockOf) right(j, width int) rightSide {
	j += b.j0
	if p := b.b.packed; p != nil {
		return b.unpack(p, j, width)
	}
	v := View{b.b.view.Data[b.k0*b.b.view.Row+j*b.b.view.Col:], b.b.view.Row, b.b.view.Col}
	if v.Col == 1 && width == panel && b.mb <= b.level.rows {
		return rightSide{at: unsafe.Pointer(&v.Data[0]), row: 4 * v.Row, ahead: 4 * panel}
	}
	dst := b.panel(width)
	b.level.pack(b.s, dst, panel, v, b.kc, width, 4*panel*v.Col)
	return rightSide{at: unsafe.Pointer(&dst[0]), row: 4 * panel}
}

// panel is memory for a panel; columns that do not exist are 0.
func (b *blockOf) panel(width int) []float32 {
	dst := b.s.b.take(b.kc * panel)
	if width < panel {
		clear(dst)
	}
	return dst
}

// unpack is right for a packed matrix.
func (b *blockOf) unpack(p *Packed, j, width int) rightSide {
	switch {
	case b.b.transposed:
		dst := b.panel(width)
		b.transposePanels(dst, p, j, width)
		return rightSide{at: unsafe.Pointer(&dst[0]), row: 4 * panel}
	case p.half == nil:
		return rightSide{at: unsafe.Pointer(&p.full[p.index(b.k0, j)]), row: 4 * panel, ahead: 2048}
	case b.level.half != nil && b.mb <= b.level.rows:
		return rightSide{at: unsafe.Pointer(&p.half[p.index(b.k0, j)]), row: 2 * panel, ahead: 2048, half: true}
	}
	dst := b.s.b.take(b.kc * panel)
	at := p.index(b.k0, j)
	b.level.widen(dst, p.half[at:at+len(dst)])
	return rightSide{at: unsafe.Pointer(&dst[0]), row: 4 * panel}
}

// transposePanels sets dst to a panel of the transpose of a packed matrix: columns [j, j+width) are rows of p, and the
// contracted axis goes through the panels of p.
func (b *blockOf) transposePanels(dst []float32, p *Packed, j, width int) {
	for k := 0; k < b.kc; {
		at := b.k0 + k
		n := min(panel-at%panel, b.kc-k)
		from := p.index(j, at)
		var src []float32
		if p.half == nil {
			src = p.full[from:]
		} else {
			src = b.s.c.take(width * panel) // from the middle of a line: the lines that follow are whole
			b.level.widen(src[:(width-1)*panel+n], p.half[from:from+(width-1)*panel+n])
		}
		b.level.pack(b.s, dst[k*panel:], panel, View{src, 1, panel}, n, width, 0)
		k += n
	}
}
