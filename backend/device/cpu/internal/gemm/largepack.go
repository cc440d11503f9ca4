package gemm

import (
	"sync"
	"unsafe"

	"github.com/goart-dev/art/backend/device/cpu/internal/pool"
)

const (
	unitGroups  = 8  // groups of rows of A that a worker packs at once
	unitRows    = 64 // rows of B
	copiedAhead = 4  // rows of B that are fetched while one is copied
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

// copiesRows reports whether B is copied a row at a time, as it lies in memory.
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

// copyRows copies some rows of B to the panels.
func (l *large) copyRows(s *scratch, first int) {
	whole, rest := l.nb/panel, l.nb%panel
	for row := first; row < min(l.kc, first+unitRows); row++ {
		at := row / l.each * l.each
		kc := min(l.each, l.kc-at)
		to := l.right[at*l.width+(row-at)*panel:]
		from := l.b.view.Data[(l.k0+row)*l.b.view.Row+l.j0:]
		if whole > 0 {
			s.packing = packing{
				dst: unsafe.Pointer(&to[0]), src: unsafe.Pointer(&from[0]), dstLine: 4 * panel * kc, srcLine: 4 * panel,
				width: panel, k: whole, ahead: 4 * copiedAhead * l.b.view.Row, lanes: 1<<panel - 1,
			}
			l.level.copy(&s.packing)
		}
		if rest > 0 {
			to = to[whole*panel*kc:][:panel]
			clear(to[copy(to, from[whole*panel:][:rest]):])
		}
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
