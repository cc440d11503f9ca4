package gemm

import "unsafe"

// rows is a run of groups of rows, each of which is a tile high.
type rows struct{ at, each, count int }

// skip is the run without its first groups.
func (r rows) skip(n int) rows { return rows{r.at + n*r.each, r.each, r.count - n} }

// groups cuts rows into groups of at most so many that are as even as possible: each takes as long as the next. The
// second run may be empty.
func groups(m, most int) [2]rows {
	n := ceil(m, most)
	low, more := m/n, m%n
	if more == 0 {
		return [2]rows{{0, low, n}}
	}
	return [2]rows{{0, low + 1, more}, {more * (low + 1), low, n - more}}
}

// block is a block of C and of the contracted axis.
type block struct {
	*call
	s      *scratch
	i0, mb int  // rows
	j0, nb int  // columns
	k0, kc int  // contracted axis
	out    View // the block of C
	mode   mode
}

// modeAt is how the block of the contracted axis that begins with k0 goes to C.
func (g *call) modeAt(k0 int) mode {
	switch {
	case g.add || k0 > 0:
		return added
	case g.resume:
		return resume
	}
	return fresh
}

// compute computes rows [i0, i0+mb) and columns [j0, j0+nb) of C, which are out.
func (g *call) compute(s *scratch, i0, mb, j0, nb int, out View) {
	if g.k == 0 && !g.add && !g.resume {
		for i := range mb {
			clear(out.Data[i*out.Row : i*out.Row+nb])
		}
	}
	for k0, kc := 0, 0; k0 < g.k; k0 += kc {
		kc = min(g.kb, g.k-k0)
		b := block{g, s, i0, mb, j0, nb, k0, kc, out, g.modeAt(k0)}
		switch {
		case g.sideways:
			b.across()
		case b.ragged() && kc > Block:
			kc = kc / Block * Block
			b.kc = kc
			b.down()
		case b.streams() || g.piece > 0 || b.ragged():
			b.pieces()
		default:
			b.down()
		}
	}
}

// pieces computes a block of the contracted axis piece by piece: chains go on from what the piece before left. That is
// in C only if no block came before.
func (b *block) pieces() {
	all := *b
	if b.mode == added {
		all.out, all.mode = View{b.s.sums.take(b.mb * b.nb), b.nb, 1}, fresh
	}
	step := b.kc
	if b.piece > 0 {
		step = ceil(b.kc, ceil(b.kc, b.piece))
	}
	for at := 0; at < b.kc; at += step {
		part := all
		part.k0, part.kc = b.k0+at, min(step, b.kc-at)
		part.down()
		all.mode = resume
	}
	if b.mode == added {
		b.addSums(all.out)
	}
}

var one = [1]float32{1}

// addSums adds the sums of a block to C: each row is one times a row of them.
func (b *block) addSums(sums View) {
	whole := b.nb / panel * panel
	for i := range b.mb {
		add := func(j, width, count int) {
			b.s.tile = tile{
				a: unsafe.Pointer(&one), b: unsafe.Pointer(&sums.Data[i*sums.Row+j]), c: unsafe.Pointer(&b.out.Data[i*b.out.Row+j]),
				k: 1, count: count, bStep: 4 * panel, cStep: 4 * panel, mode: resume,
			}
			b.level.tiles(b.s, 1, width, false)
		}
		if whole > 0 {
			add(0, panel, whole/panel)
		}
		if whole < b.nb {
			add(whole, b.nb-whole, 1)
		}
	}
}

// down goes through the panels of B, and for each through all rows of A.
func (b *block) down() {
	left, from := b.left(), 0
	if b.streams() {
		from = b.stream()
	}
	for j, width := from, 0; j < b.nb; j += width {
		width = b.width(b.nb - j)
		right, done := b.right(left, j, width)
		for _, run := range groups(b.mb, b.level.rows) {
			skipped := min(done, run.count)
			done -= skipped
			if run = run.skip(skipped); run.count > 0 {
				b.begin(left, run, j, right)
				b.level.tiles(b.s, run.each, width, right.half)
				right.early = b.s.tile.early
			}
		}
	}
}

// across goes through the rows of A a tile at a time, and for each through all panels of B.
func (b *block) across() {
	whole, rest := b.nb/panel, b.nb%panel
	right, last := b.rightAll()
	lanes := rest
	if b.swapped { // C has room, and the panel has zeros
		lanes = b.level.padded(rest)
	}
	for _, run := range groups(b.mb, b.groupRows()) {
		if whole == 0 && rest <= narrowColumns && run.count > 0 { // one call of a kernel
			b.begin(b.inPlaceLeft(0), run, 0, last)
			b.prefetchRows(run.at+run.each, run.each)
			b.level.tiles(b.s, run.each, lanes, false)
			continue
		}
		for i := range run.count {
			at := run.at + i*run.each
			left := b.inPlaceLeft(at)
			if whole > 0 {
				b.wholePanels(left, rows{at, run.each, whole}, 0, right, nil)
			}
			if rest > 0 {
				b.begin(left, rows{at, run.each, 1}, whole*panel, last)
				if whole == 0 {
					b.prefetchRows(at+run.each, run.each)
				}
				b.level.tiles(b.s, run.each, lanes, false)
			}
		}
	}
}

// groupRows is the most rows of A that are read at once. Rows that are whole pages apart share a set of the first
// cache, which has 12 places or fewer.
func (b *block) groupRows() int {
	if b.a.Col == 1 && 4*b.a.Row%pageBytes == 0 {
		return min(b.level.rows, setRows)
	}
	return b.level.rows
}

// prefetchRows lets a kernel prefetch rows of A that come next, where they follow one another: of a matmul with few
// columns, they are most of what is read.
func (b *block) prefetchRows(at, n int) {
	if n = min(n, b.mb-at); n > 0 && b.a.Col == 1 && b.a.Row == b.kc {
		t := &b.s.tile
		t.early = int(uintptr(unsafe.Pointer(&b.a.Data[(b.i0+at)*b.a.Row])) - uintptr(t.b))
		t.earlyStep = min(64, 4*n)
	}
}

// wholePanels computes a group of rows with so many whole panels of B from a column on, and prefetches parts of memory
// meanwhile.
func (b *block) wholePanels(left leftSide, group rows, column int, right rightSide, parts []part) {
	calls := max(1, min(len(parts), group.count))
	for i := range calls {
		from, to := group.count*i/calls, group.count*(i+1)/calls
		b.begin(left, rows{group.at, group.each, to - from}, column+from*panel, right)
		t := &b.s.tile
		t.b = unsafe.Add(t.b, (column/panel+from)*right.step)
		t.aStep, t.bStep, t.cStep = 0, right.step, 4*panel
		if len(parts) > 0 {
			t.early = int(uintptr(parts[i].at) - uintptr(t.b))
			t.earlyStep = ceil(parts[i].bytes, 2*b.kc*(to-from))
		}
		b.level.tiles(b.s, group.each, panel, false)
	}
}

// begin sets the tile of a run of rows, at column j of the block.
func (b *block) begin(left leftSide, run rows, j int, right rightSide) {
	t := &b.s.tile
	*t = tile{
		b: right.at, bRow: right.row, k: b.kc, count: run.count,
		ahead: right.ahead, early: right.early, earlyStep: right.earlyStep, mode: b.mode,
		c: unsafe.Pointer(&b.out.Data[run.at*b.out.Row+j]), cRow: 4 * b.out.Row, cStep: 4 * run.each * b.out.Row,
	}
	left.rows(t, run, b.kc)
}
