package gemm

import (
	"unsafe"

	"github.com/goart-dev/art/backend/device/cpu/internal/pool"
)

// large is a part of a matmul of many rows and columns. The workers pack its operands first, groups of rows of A side
// by side unless they are short, and panels of B unless that is packed already, and then share the tiles of C: nothing
// is packed twice, and kernels read contiguous memory. See K. Goto and R. van de Geijn, "Anatomy of high-performance
// matrix multiplication", 2008.
type large struct {
	block            // all of the part
	each         int // length of the blocks of the contracted axis
	count        int // of the groups of rows, which are as even as possible: each takes as long as the next
	shares       int // of the columns: one for each worker, if they are wide
	down, across int // tasks of a share
	packs        *packs
	left         []float32 // packed A: blocks of the contracted axis, of groups of rows; nil: kernels read A where it is
	right        []float32 // packed B: blocks of the contracted axis, of panels; nil: kernels read B where it is
	width        int       // columns of the panels of right
}

// isLarge reports whether packing is little of the work.
func (g *call) isLarge() bool { return g.m > skinny && g.n >= largeColumns && g.k >= largeDepth }

// largeBatch computes the large matmuls of a batch: each by all workers, or each by one if there are many.
func (k *Kernels) largeBatch(p *pool.Pool, g call, count int) {
	if p != nil && count >= partTasks*p.Workers() {
		p.For(count, func(i int) { k.large(nil, g.member(i)) })
		return
	}
	for i := range count {
		k.large(p, g.member(i))
	}
}

// large computes a large matmul part by part.
func (k *Kernels) large(p *pool.Pool, g call) {
	packs := k.packs.get()
	defer k.packs.put(packs)
	m, n := min(g.m, partRows), g.n
	numbers := m
	if g.b.packed == nil {
		n = min(n, partColumns)
		numbers += n
	}
	depth := max(1, partNumbers/numbers/Block) * Block
	for j := 0; j < g.n; j += n {
		for i := 0; i < g.m; i += m {
			for at := 0; at < g.k; at += depth {
				l := large{packs: packs, block: block{
					call: &g, i0: i, mb: min(m, g.m-i), j0: j, nb: min(n, g.n-j), k0: at, kc: min(depth, g.k-at),
				}}
				l.plan(p)
				l.compute(k, p)
			}
		}
	}
}

// ready reports whether kernels of large matmuls read B where it is.
func (o *operand) ready() bool { return o.packed != nil && !o.repacks() }

// repacks reports whether each task of a large matmul packs its columns of a B that is packed: they are to be
// transposed, or not of float32. If all were packed first, they would go through memory on the way, which takes longer.
func (o *operand) repacks() bool { return o.packed != nil && (o.transposed || o.packed.full == nil) }

// plan cuts the part into blocks and tasks.
func (l *large) plan(p *pool.Pool) {
	l.each = Block
	l.count = ceil(l.mb, l.level.largest())
	workers, want := p.Workers(), 1
	if p != nil {
		want = min(partTasks*workers, l.mb*l.nb*l.kc/taskWork)
	}
	l.shares = 1
	if l.nb >= workers*sharePairs*broadPair {
		l.shares = workers
	} else if even := ceil(l.count, workers) * workers; even <= l.count+l.count/8 {
		l.count = even // workers share the rows
	}
	width := panels(l.nb) / l.shares * panel // of the narrowest
	l.down, l.across = ceil(l.count, taskGroups), ceil(width, taskPairs*broadPair)
	if l.b.repacks() {
		l.down, l.across = ceil(l.count, repackGroups), ceil(width, repackPairs*broadPair)
		want /= partTasks
	}
	for l.shares*l.down*l.across < want && 2*l.down <= l.count {
		l.down *= 2
	}
}

// compute computes the part.
func (l *large) compute(k *Kernels, p *pool.Pool) {
	l.pack(k, p)
	k.each(p, l.shares*l.down*l.across, l.task)
}

// each calls f for all of [0, n), by the workers of a pool.
func (k *Kernels) each(p *pool.Pool, n int, f func(s *scratch, i int)) {
	p.For(n, func(i int) {
		s := k.free.get()
		f(s, i)
		k.free.put(s)
	})
}

// group is a group of rows of the part.
func (l *large) group(i int) tileRun {
	from, to := l.mb*i/l.count, l.mb*(i+1)/l.count
	return tileRun{from, to - from, 1}
}

// blocks calls f for each block of the contracted axis, which begins at so many of the part.
func (l *large) blocks(s *scratch, f func(b block, at int)) {
	for at := 0; at < l.kc; at += l.each {
		b := l.block
		b.s, b.k0, b.kc, b.mode = s, l.k0+at, min(l.each, l.kc-at), l.modeAt(l.k0+at)
		f(b, at)
	}
}

// columns are those of a task of a share.
func (l *large) columns(share, i int) (from, to int) {
	all := panels(l.nb)
	from, to = all*share/l.shares*panel, min(l.nb, all*(share+1)/l.shares*panel)
	pairs := ceil(to-from, broadPair)
	return from + pairs*i/l.across*broadPair, min(to, from+pairs*(i+1)/l.across*broadPair)
}

// task computes some groups of rows of some pairs of broad tiles. Those of a share follow one another.
func (l *large) task(s *scratch, i int) {
	share, i := i/(l.down*l.across), i%(l.down*l.across)
	from, to := l.columns(share, i%l.across)
	i /= l.across
	first, n := l.count*i/l.down, l.count*(i+1)/l.down-l.count*i/l.down
	l.blocks(s, func(b block, at int) {
		b.j0, b.nb = l.j0+from, to-from
		b.out = View{l.c.Data[l.i0*l.c.Row+b.j0:], l.c.Row, 1}
		right, next := l.rightOf(&b, at, from), l.next(&b)
		for i := range n {
			run := l.group(first + i)
			left := l.leftOf(&b, at, run.row)
			b.allColumns(left, run, right, next[len(next)*i/n:len(next)*(i+1)/n])
		}
	})
}

// leftOf is where a block's part of A is from a row on.
func (l *large) leftOf(b *block, at, row int) leftSide {
	if l.left == nil {
		return b.inPlaceLeft(row)
	}
	return leftSide{data: l.left[at*l.mb+row*b.kc:], packed: true, first: row}
}

// rightOf is where a block's part of B is, which begins with a column of the part.
func (l *large) rightOf(b *block, at, column int) rightSide {
	var data []float32
	step := b.kc // from a panel to the next, in rows
	switch p := l.b.packed; {
	case l.b.ready():
		data, step = p.full[p.index(b.k0, b.j0):], p.K
	case l.b.repacks():
		data = b.s.b.take(panels(b.nb) * panel * b.kc)
		for j := 0; j < b.nb; j += panel {
			b.copyPanel(data[j*b.kc:][:panel*b.kc], j, min(panel, b.nb-j))
		}
	default:
		data = l.right[at*l.width+column*b.kc:]
	}
	r := panelAt(data)
	r.step, r.ahead = 4*panel*step, largeAhead
	return r
}

// next is what the next block reads of a packed matrix, panel by panel: the next one of the contracted axis, or the
// first one of the columns that the worker is likely to go on with.
func (l *large) next(b *block) (parts []part) {
	if !l.b.ready() {
		return nil
	}
	k, j := b.k0+b.kc, b.j0
	if k == l.k0+l.kc {
		k, j = l.k0, j+b.nb
	}
	kc := min(l.each, l.k0+l.kc-k)
	for end := min(j+b.nb, l.n); j < end; j += panel {
		parts = append(parts, l.b.packed.part(k, kc, j))
	}
	return parts
}

// allColumns computes a group of rows of the block, and prefetches parts of memory meanwhile.
func (b *block) allColumns(left leftSide, run tileRun, right rightSide, parts []part) {
	done := 0
	if b.level.broad != nil && b.nb >= broadPair {
		done = b.nb / broadPair * broadPair
		b.broadTiles(left, tileRun{run.row, run.height, done / broadColumns}, right, parts)
		parts = nil
	}
	if whole := (b.nb - done) / panel; whole > 0 {
		b.wholePanels(left, tileRun{run.row, run.height, whole}, done, right, parts)
		done += whole * panel
	}
	if rest := b.nb - done; rest > 0 {
		right.at = unsafe.Add(right.at, done/panel*right.step)
		b.setTile(left, tileRun{run.row, run.height, 1}, done, right)
		b.level.tiles(b.s, rest, false)
	}
}

// broadTiles computes a group of rows with so many broad tiles, which is an even number.
func (b *block) broadTiles(left leftSide, group tileRun, right rightSide, parts []part) {
	b.setTile(left, group, 0, right)
	t := &b.s.tile
	t.bStep, t.cStep = right.step, 4*broadColumns
	if len(parts) == 0 { // the next group of A follows
		bytes := 4 * group.height * b.kc
		t.early = int(uintptr(t.a)-uintptr(t.b)) + bytes
		t.earlyStep = ceil(bytes, max(1, b.kc/2)*group.count)
	} else {
		t.early = int(uintptr(parts[0].at) - uintptr(t.b))
		t.earlyStep = ceil(parts[0].bytes, max(1, b.kc/2)*group.count)
	}
	t.prefetchC(group.height)
	if left.packed {
		b.level.broad(t)
	} else {
		b.level.placed(t)
	}
}
