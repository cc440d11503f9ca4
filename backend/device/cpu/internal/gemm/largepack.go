package gemm

import (
	"sync"

	"github.com/goart-dev/art/backend/device/cpu/internal/pool"
)

// pack packs the operands of the part.
func (l *large) pack(k *Kernels, p *pool.Pool) {
	left, right := 0, 0 // units of A and B
	if !l.leftReady() {
		l.left = l.packs.left.take(l.mb * l.kc)
		left = ceil(l.count, unitGroups)
	}
	if l.b.packed == nil {
		l.width = panels(l.nb) * panel
		l.right = l.packs.right.take(l.width * l.kc)
		right = l.width / panel
		if l.copiesRows() {
			right = ceil(l.kc, unitRows)
		}
	}
	k.each(p, left+right, func(s *scratch, i int) {
		switch {
		case i >= right:
			l.packGroups(s, (i-right)*unitGroups)
		case l.copiesRows():
			l.copyRows(s, i*unitRows)
		default:
			l.packPanel(s, i*panel)
		}
	})
}

// leftReady reports whether kernels read A where it is: rows that are short and follow one another. Longer ones are
// often a power of two apart, where L1 has no room for those of a tile.
func (l *large) leftReady() bool { return l.a.Col == 1 && l.a.Row == l.k && l.each >= l.k }

// copiesRows reports whether B is copied some rows at a time, since they are contiguous.
func (l *large) copiesRows() bool { return l.b.packed == nil && l.b.view.Col == 1 }

// packGroups packs some groups of rows of A.
func (l *large) packGroups(s *scratch, first int) {
	for i := first; i < min(l.count, first+unitGroups); i++ {
		run := l.group(i)
		l.blocks(s, func(b block, at int) { b.packLeft(l.left[at*l.mb+run.row*b.kc:], run.row, run.height) })
	}
}

// packPanel packs a panel of B.
func (l *large) packPanel(s *scratch, j int) {
	l.blocks(s, func(b block, at int) {
		b.copyPanel(l.right[at*l.width+j*b.kc:][:panel*b.kc], j, min(panel, l.nb-j))
	})
}

// copyRows copies some rows of B to the panels, of one panel after another: what is written is contiguous.
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
			src := View{v.Data[(l.k0+row)*v.Row+l.j0+j:], v.Row, 1}
			l.level.pack(s, lines{dst: Out{to, panel}, src: src, k: n, width: width, ahead: panel})
		}
		row += n
	}
}

// packs is memory for the packed operands of a part.
type packs struct{ left, right buffer }

// packsList is the packs that no matmul uses: as many as were ever used at once.
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
