package gemm

import (
	"github.com/goart-dev/art/backend/device/cpu/internal/pool"
	"sync"
)

const (
	unitGroups = 8  // groups of rows of A that a worker packs at once
	unitRows   = 32 // rows of B: the processor follows some 32 pages at once
)

// pack packs the operands of the part.
func (l *large) pack(k *Kernels, p *pool.Pool) {
	l.left = l.packs.left.take(l.mb * l.kc)
	units := 0 // of B
	if l.b.packed == nil {
		l.width = panels(l.nb) * panel
		l.right = l.packs.right.take(l.width * l.kc)
		units = l.width / panel
		if l.copiesRows() {
			units = ceil(l.kc, unitRows)
		}
	}
	k.each(p, units+ceil(l.count, unitGroups), func(s *scratch, i int) {
		switch {
		case i >= units:
			l.packGroups(s, (i-units)*unitGroups)
		case l.copiesRows():
			l.copyRows(s, i*unitRows)
		default:
			l.packPanel(s, i*panel)
		}
	})
}

// copiesRows reports whether B is copied some rows at a time, since they lie together.
func (l *large) copiesRows() bool { return l.b.packed == nil && l.b.view.Col == 1 }

// packGroups packs some groups of rows of A.
func (l *large) packGroups(s *scratch, first int) {
	for i := first; i < min(l.count, first+unitGroups); i++ {
		run := l.group(i)
		l.blocks(s, func(b block, at int) { b.packLeft(l.left[at*l.mb+run.at*b.kc:], run.at, run.each) })
	}
}

// packPanel packs a panel of B.
func (l *large) packPanel(s *scratch, j int) {
	l.blocks(s, func(b block, at int) {
		b.copyPanel(l.right[at*l.width+j*b.kc:][:panel*b.kc], j, min(panel, l.nb-j))
	})
}

// copyRows copies some rows of B to the panels, of one panel after another: what is written lies together.
func (l *large) copyRows(s *scratch, first int) {
	for row, end := first, min(l.kc, first+unitRows); row < end; {
		at := row / l.each * l.each // a block of the contracted axis
		kc := min(l.each, l.kc-at)
		n := min(end, at+kc) - row
		for j := 0; j < l.nb; j += panel {
			width := min(panel, l.nb-j)
			to := l.right[at*l.width+j*kc+(row-at)*panel:][:n*panel]
			if width < panel {
				clear(to)
			}
			v := l.b.view
			l.level.pack(s, to, panel, View{v.Data[(l.k0+row)*v.Row+l.j0+j:], v.Row, 1}, n, width, panel)
		}
		row += n
	}
}

// packs is memory for the packed operands of a part.
type packs struct{ left, right buffer }

// packsList is the packs that no product uses: as many as were ever used at once.
type packsList struct {
	mu   sync.Mutex
	list []*packs
}

func (f *packsList) get() *packs {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := len(f.list)
	if n == 0 {
		return new(packs)
	}
	p := f.list[n-1]
	f.list = f.list[:n-1]
	return p
}

func (f *packsList) put(p *packs) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.list = append(f.list, p)
}
