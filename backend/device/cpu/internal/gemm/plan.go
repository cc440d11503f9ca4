package gemm

// plan says how a product is cut into tasks and blocks.
type plan struct {
	mb, nb, kb   int // rows and columns of C of a task, and length of the contracted axis of a block
	down, across int // tasks of a product
	tasks        int // of all products of the batch
	sideways     bool
	packA        bool
}

const (
	taskWork    = 50_000 // least multiply-adds that are worth a task of their own
	taskRows    = 1024
	taskColumns = 512
	blockDepth  = 512
)

// planOf cuts a product of a batch of so many.
func planOf(g *product, count, workers int) plan {
	p := plan{mb: min(g.m, taskRows), nb: min(g.n, taskColumns), kb: blockDepth}
	want := 1
	if workers > 1 {
		want = min(4*workers, count*g.m*g.n*max(g.k, 1)/taskWork)
	}
	for {
		p.down, p.across = ceil(g.m, p.mb), ceil(g.n, p.nb)
		p.tasks = count * p.down * p.across
		if p.tasks >= want || !p.halve(g.level.rows) {
			break
		}
	}
	p.sideways = p.mb > 64
	if p.mb <= g.level.rows {
		p.kb = 4096
	}
	p.packA = p.mb > 4 && p.nb > 256
	return p
}

// halve cuts the longer side of a task, and reports whether it could.
func (p *plan) halve(rows int) bool {
	switch {
	case p.nb > panel && p.nb >= p.mb:
		p.nb = ceil(ceil(p.nb, 2), panel) * panel
	case p.mb > rows:
		p.mb = ceil(ceil(p.mb, 2), rows) * rows
	case p.nb > panel:
		p.nb = ceil(ceil(p.nb, 2), panel) * panel
	default:
		return false
	}
	return true
}

// ceil is x/y, rounded up.
func ceil(x, y int) int { return (x + y - 1) / y }
