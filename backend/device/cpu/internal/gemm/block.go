package gemm

import "unsafe"

// tileRun is count tiles of C that are height rows high, the first of which begins at a row of the block. Those of
// splitRows lie one below the other, those of wholePanels and broadTiles side by side.
type tileRun struct{ row, height, count int }

// skip is the run without its first n tiles, which are above the others.
func (r tileRun) skip(n int) tileRun { return tileRun{r.row + n*r.height, r.height, r.count - n} }

// splitRows cuts m rows into as few tiles of at most so many rows as possible. Their heights differ by one at most,
// since kernels of few rows reuse little of B: the first run has the higher tiles, the second, which may be empty, the
// others. 17 rows, at most 6 each, are {0, 6, 2} and {12, 5, 1}.
func splitRows(m, most int) [2]tileRun {
	n := ceil(m, most)
	low, more := m/n, m%n
	if more == 0 {
		return [2]tileRun{{0, low, n}}
	}
	return [2]tileRun{{0, low + 1, more}, {more * (low + 1), low, n - more}}
}

// block is a part of a matmul that is computed at once: C[i0:i0+mb, j0:j0+nb] from A[i0:i0+mb, k0:k0+kc] and
// B[k0:k0+kc, j0:j0+nb].
type block struct {
	*call
	s      *scratch
	i0, mb int  // rows
	j0, nb int  // columns
	k0, kc int  // contracted axis
	out    View // [mb, nb], the block of C
	mode   mode
}

// modeAt says how a part of the contracted axis that begins at k0 goes into C. The first part replaces C, or goes on
// from it (see [Kernels.Resume]); later ones, and all parts of a matmul that is added, are added to it.
func (g *call) modeAt(k0 int) mode {
	switch {
	case g.add || k0 > 0:
		return added
	case g.resume:
		return resume
	}
	return fresh
}

// compute computes rows [i0, i0+mb) and columns [j0, j0+nb) of C, into out, over all of the contracted axis, in parts
// of at most kb.
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
		case b.multipliesCodes(mb):
			b.multiplyCodes()
		case b.inParts():
			b.multiplyParts()
		case g.rowsOuter:
			b.computeByRows()
		case b.ragged() && kc > Block: // whole fixed blocks first, the short last one in a turn of its own
			kc = kc / Block * Block
			b.kc = kc
			b.computeByPanels()
		case b.streams() || g.piece > 0 || b.ragged():
			b.computeInPieces()
		default:
			b.computeByPanels()
		}
	}
}

// computeInPieces computes a fixed block of the contracted axis in several calls, each of a piece of it. The chain of
// fused multiply-adds of an element must not be cut, or its bits change: so a piece goes on (mode resume) from the sum
// that the one before left in out. Where blocks before are in C already (mode added), that sum cannot lie there: it is
// kept in memory of its own, [mb, nb], and is added to C at the end. A block whose rows of B kernels transpose in two
// parts (ragged) is one piece: the second part goes on from out as well.
func (b *block) computeInPieces() {
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
		part.computeByPanels()
		all.mode = resume
	}
	if b.mode == added {
		b.addSums(all.out)
	}
}

var one = [1]float32{1}

// addSums adds sums [mb, nb] to C.
func (b *block) addSums(sums View) {
	whole := b.nb / panel * panel
	for i := range b.mb {
		c, row := b.out.Data[i*b.out.Row:], sums.Data[i*sums.Row:]
		if whole > 0 {
			b.addRow(c, row, panel, whole/panel)
		}
		if whole < b.nb {
			b.addRow(c[whole:], row[whole:], b.nb-whole, 1)
		}
	}
}

// addRow adds contiguous sums, count times width of them. It uses the kernels of the matmul, with A = [1] and k = 1:
// fma(1, s, c) is c + s, rounded once as all sums of blocks are.
func (b *block) addRow(c, sums []float32, width, count int) {
	b.s.tile = tile{
		a: unsafe.Pointer(&one), b: unsafe.Pointer(&sums[0]), c: unsafe.Pointer(&c[0]),
		rows: 1, k: 1, count: count, bStep: 4 * panel, cStep: 4 * panel, mode: resume,
	}
	b.level.tiles(b.s, width, false)
}

// computeByPanels takes one panel of B [kc, width] after the other, and multiplies all rows of A with it: so B is read
// from memory once, and A [mb, kc], which is small, stays in a cache. right may have computed the first tiles of a
// panel while it copied that.
func (b *block) computeByPanels() {
	left, from := b.left(), 0
	if b.streams() {
		from = b.stream()
	}
	for j, width := from, 0; j < b.nb; j += width {
		width = b.width(b.nb - j)
		right, done := b.right(left, j, width)
		for _, run := range splitRows(b.mb, b.level.rows) {
			skipped := min(done, run.count)
			done -= skipped
			if run = run.skip(skipped); run.count > 0 {
				b.setTile(left, run, j, right)
				b.level.tiles(b.s, width, right.half)
				right.early = b.s.tile.early
			}
		}
	}
}

// computeByRows takes the rows of A of one tile [height, kc] after the other, and multiplies them with all panels of B,
// which are packed before, unless they are already, and stay in a cache. It is for many rows.
func (b *block) computeByRows() {
	whole, rest := b.nb/panel, b.nb%panel
	right, last := b.rightAll()
	lanes := rest
	if b.swapped { // out has room for a whole tile, and the last panel is padded with zeros
		lanes = b.level.padded(rest)
	}
	for _, run := range splitRows(b.mb, b.rowsPerTile()) {
		if whole == 0 && rest <= narrowColumns && run.count > 0 { // the only panel: one call of a kernel for all rows
			b.setTile(b.inPlaceLeft(0), run, 0, last)
			b.prefetchRows(run.row+run.height, run.height)
			b.level.tiles(b.s, lanes, false)
			continue
		}
		for i := range run.count {
			at := run.row + i*run.height
			left := b.inPlaceLeft(at)
			if whole > 0 {
				b.wholePanels(left, tileRun{at, run.height, whole}, 0, right, nil)
			}
			if rest > 0 {
				b.setTile(left, tileRun{at, run.height, 1}, whole*panel, last)
				if whole == 0 {
					b.prefetchRows(at+run.height, run.height)
				}
				b.level.tiles(b.s, lanes, false)
			}
		}
	}
}

// rowsPerTile is how many rows of A a tile may have. A kernel reads all of them at once. Rows that are a multiple of a
// page apart fall into the same set of L1, which has 12 ways or fewer: more would evict one another.
func (b *block) rowsPerTile() int {
	if b.a.Col == 1 && 4*b.a.Row%pageBytes == 0 {
		return min(b.level.rows, setRows)
	}
	return b.level.rows
}

// prefetchRows lets a kernel prefetch the next n rows of A, if they follow without a gap. In a matmul of few columns
// A is most of what is read, and comes from memory.
func (b *block) prefetchRows(at, n int) {
	if n = min(n, b.mb-at); n > 0 && b.a.Col == 1 && b.a.Row == b.kc {
		t := &b.s.tile
		t.early = int(uintptr(unsafe.Pointer(&b.a.Data[(b.i0+at)*b.a.Row])) - uintptr(t.b))
		t.earlyStep = min(64, 4*n)
	}
}

// wholePanels computes C[group.row:+height, column:+count*panel], from group.count whole panels of B. It divides the
// panels among len(parts) calls of a kernel, each of which prefetches one part of what is needed next; with fewer
// panels than parts, the last parts are not prefetched.
func (b *block) wholePanels(left leftSide, group tileRun, column int, right rightSide, parts []part) {
	calls := max(1, min(len(parts), group.count))
	for i := range calls {
		from, to := group.count*i/calls, group.count*(i+1)/calls
		b.setTile(left, tileRun{group.row, group.height, to - from}, column+from*panel, right)
		t := &b.s.tile
		t.b = unsafe.Add(t.b, (column/panel+from)*right.step)
		t.aStep, t.bStep, t.cStep = 0, right.step, 4*panel
		if len(parts) > 0 {
			t.early = int(uintptr(parts[i].at) - uintptr(t.b))
			t.earlyStep = ceil(parts[i].bytes, 2*b.kc*(to-from))
		}
		b.level.tiles(b.s, panel, false)
	}
}

// setTile describes a run of tiles, one below the other, at column j of the block, to the kernels.
func (b *block) setTile(left leftSide, run tileRun, j int, right rightSide) {
	t := &b.s.tile
	*t = tile{
		rows: run.height, b: right.at, bRow: right.row, k: b.kc, count: run.count,
		ahead: right.ahead, early: right.early, earlyStep: right.earlyStep, mode: b.mode,
		c: unsafe.Pointer(&b.out.Data[run.row*b.out.Row+j]), cRow: 4 * b.out.Row, cStep: 4 * run.height * b.out.Row,
	}
	left.setTile(t, run, b.kc)
}
