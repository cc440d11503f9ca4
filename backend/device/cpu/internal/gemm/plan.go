package gemm

// plan says how a matmul is cut into tasks and blocks.
type plan struct {
	mb, nb, kb   int  // rows and columns of C of a task, and length of the contracted axis of a block
	down, across int  // tasks of a matmul
	tasks        int  // of all matmuls of the batch
	rowsOuter    bool // the outer loop is over rows of A and the inner one over panels of B, not the reverse
	packA        bool // groups of rows of A are packed
	piece        int  // of a block of the contracted axis, which is computed in pieces; 0: it is not
}

// planOf cuts a matmul of a batch of so many.
func planOf(g *call, count, workers int) plan {
	p := plan{mb: min(g.m, taskRows), nb: min(g.n, taskColumns)}
	if g.b.packed != nil {
		p.nb = min(g.n, packedColumns)
	}
	switch {
	case g.streams():
		p.nb = min(g.n, streamLong)
	case g.m <= skinny:
		p.nb = min(g.n, longColumns)
	}
	want := 1
	if workers > 1 {
		want = min(tasksEach(g, count)*workers, count*g.m*g.n*max(g.k, 1)/taskWork)
	}
	if g.streams() {
		want = min(want, max(workers, count*g.n/streamTask))
	}
	for {
		p.down, p.across = ceil(g.m, p.mb), ceil(g.n, p.nb)
		p.tasks = count * p.down * p.across
		if p.tasks >= want || !p.halve(g) {
			break
		}
	}
	p.rowsOuter = p.mb > skinny
	p.packA = !p.rowsOuter && p.mb > packRows && p.nb >= packColumns
	if !p.rowsOuter && g.b.scattered(g.k, g.n) {
		p.piece = streams
	}
	// The parts of the contracted axis: as many of the fixed blocks in each, as even as possible.
	most := Block
	switch {
	case g.multipliesCodes(p.mb):
		most = g.k
	case g.streams() || p.piece > 0 || g.b.packed.IsQuantized() && (p.rowsOuter || g.b.transposed):
	case g.level.reread > 0 && !p.rowsOuter && g.b.ready() && p.mb > g.level.rows:
		most = g.level.reread
	case p.mb <= g.level.rows, g.n <= transposeSize, !p.rowsOuter && g.b.packed != nil && !g.b.transposed:
		most = longBlock
	case !p.rowsOuter && (g.b.packed != nil || g.b.view.Col != 1):
		most = skinnyBlock
	}
	p.kb = ceil(ceil(g.k, max(1, ceil(g.k, most))), Block) * Block
	return p
}

// tasksEach is how many tasks a worker gets: several, since workers are not equally fast, but few if each task packs
// operands that the next one packs again, or begins with columns of B that were not prefetched before, and one if it is
// short.
func tasksEach(g *call, count int) int {
	switch {
	case g.multipliesCodes(g.m): // which are prefetched, and nothing is packed
		return 8
	case g.m > skinny && count*g.m*g.n*g.k <= shortWork:
		return 1
	case g.m > skinny:
		return 2
	case g.m > g.level.rows:
		return 4
	}
	return 8
}

// scattered reports whether each row of a large B [k, n] that is used in place begins in another page than the one
// before.
func (o *operand) scattered(k, n int) bool {
	return o.packed == nil && o.view.Col == 1 && 4*o.view.Row >= pageBytes && 4*k*n > largeBytes
}

// halve cuts the longer side of a task, and reports whether it could.
func (p *plan) halve(g *call) bool {
	rows, columns := g.level.rows, panel
	if g.m == 1 && g.level.multiplyTwo && g.multipliesCodes(1) {
		columns = 2 * panel
	}
	switch {
	case p.nb > columns && p.nb >= p.mb:
		p.nb = ceil(ceil(p.nb, 2), columns) * columns
	case p.mb > rows:
		p.mb = ceil(ceil(p.mb, 2), rows) * rows
	case p.nb > columns:
		p.nb = ceil(ceil(p.nb, 2), columns) * columns
	default:
		return false
	}
	return true
}

// ceil is x/y, rounded up.
func ceil(x, y int) int { return (x + y - 1) / y }
