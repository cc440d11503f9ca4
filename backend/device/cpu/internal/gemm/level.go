package gemm

import (
	"unsafe"

	"github.com/goart-dev/art/backend/device/cpu/internal/cpuid"
)

// level is the kernels of an instruction set.
type level struct {
	rows, columns int      // of the largest tile
	full          []kernel // by rows
	narrow        []kernel // the same for 16 columns, where columns is 32
	thin          []kernel // and for 8, whose vectors are half as wide: some processors do twice as many of them at once
	half          []kernel // for a B of bfloat16; nil: it is widened before
	transB        []kernel // of 16 columns, that are contiguous in B and are copied as rows; nil: they are copied before
	broad         []kernel // by rows: of 48 columns, for a packed A and whole panels of B
	placed        []kernel // the same for contiguous rows of A
	wide          []wide   // by rows: for more columns of few rows of A
	stream        []kernel // by rows of B: for one row of A, with B in place
	masks         bool     // kernels heed lanes
	oneStage      int      // most rows of A for which a packed B is prefetched in one stage,
	oneStageHalf  int      // and the same for bfloat16,
	near          int      // so many bytes ahead
	reread        int      // rows of a packed B that groups of rows of A read one after another; 0: longBlock
	copy          func(*packing)
	transpose     []func(*packing) // by numbers of a line, for a multiple of 4 lines; nil: they are transposed in Go
	blocks        func(*packing)   // transposes blocks of 32 x 32; nil: they are transposed like others
	widen         func(dst []float32, src []uint16)
	read          func(p unsafe.Pointer, bytes int)
}

// largest is the rows of the largest tile of a large matmul.
func (l *level) largest() int {
	if l.broad != nil {
		return len(l.broad) - 1
	}
	return l.rows
}

// padded is so many columns, and those after them for which kernels without masks need room.
func (l *level) padded(columns int) int {
	if l.masks {
		return columns
	}
	return ceil(columns, l.columns) * l.columns
}

// wide is a kernel of more columns than others, which are all there.
type wide struct {
	columns int
	kernel  kernel
}

var portable = level{
	rows: 4, columns: panel,
	full:  []kernel{1: portableTile(1, panel), portableTile(2, panel), portableTile(3, panel), portableTile(4, panel)},
	copy:  copyLines,
	widen: widenAll,
	read:  readAll,
}

func widenAll(dst []float32, src []uint16) {
	for i, v := range src {
		dst[i] = widen(v)
	}
}

// levelOf returns the kernels of a level; those of Go where there are no others.
func levelOf(l cpuid.Level) *level {
	if l := assembly(l); l != nil {
		return l
	}
	return &portable
}

// tiles computes the tiles of s, each of so many rows and up to 32 columns.
func (l *level) tiles(s *scratch, rows, width int, half bool) {
	t, columns := &s.tile, l.columns
	if rows < len(l.wide) && width == l.wide[rows].columns && t.count == 1 && !half {
		t.blocks(l.wide[rows].kernel, 0)
		return
	}
	kernels, size := l.full, 4
	switch {
	case half:
		kernels, size = l.half, 2
	case width <= 8 && l.thin != nil:
		kernels = l.thin
	case width <= 16 && l.narrow != nil:
		kernels = l.narrow
	}
	count, prefetched := t.count, t.earlyStep*max(1, size*columns/64)
	for {
		t.lanes = 1<<min(width, columns) - 1
		t.count = count
		if width >= columns || l.masks {
			t.blocks(kernels[rows], prefetched)
		} else {
			l.edge(s, kernels[rows], rows, width, prefetched)
		}
		t.early += count * t.k * prefetched
		if width -= columns; width <= 0 {
			return
		}
		t.early -= size * columns
		t.b, t.c = unsafe.Add(t.b, size*columns), unsafe.Add(t.c, 4*columns)
	}
}

// edge computes tiles that reach out of C, one after another, in memory of their own.
func (l *level) edge(s *scratch, call kernel, rows, width, prefetched int) {
	whole := s.tile
	t := &s.tile
	t.c, t.cRow = unsafe.Pointer(&s.edge[0]), 4*l.columns
	for i := range whole.count {
		t.a, t.b = unsafe.Add(whole.a, i*t.aStep), unsafe.Add(whole.b, i*t.bStep)
		c := unsafe.Add(whole.c, i*whole.cStep)
		if t.mode != fresh {
			for r := range rows {
				copy(s.edge[r*l.columns:], floats(unsafe.Add(c, r*whole.cRow), width))
			}
		}
		t.count = 1
		t.blocks(call, prefetched)
		for r := range rows {
			copy(floats(unsafe.Add(c, r*whole.cRow), width), s.edge[r*l.columns:])
		}
	}
	s.tile = whole
}

// lines are k lines of width numbers that are copied: number i of line k from src.Data[k*src.Row + i*src.Col] to
// dst.Data[k*dst.Row + i].
type lines struct {
	dst      Out
	src      View
	k, width int
	ahead    int // how many numbers after one another begins that is packed later
}

// pack copies lines.
func (l *level) pack(s *scratch, p lines) {
	src, width := p.src, p.width
	if src.Row != 1 && src.Col != 1 {
		copyView(p.dst.view(), src, p.k, width)
		return
	}
	kernel, step, across, most := l.transposes, src.Col, src.Col, len(l.transpose)-1
	switch {
	case src.Col == 1:
		kernel, step, across, most = l.copy, src.Row, 1, panel
	case l.transpose == nil:
		kernel, most = transposeLines, panel
	}
	for i := 0; i < width; i += most {
		n := min(most, width-i)
		s.packing = packing{
			dst: unsafe.Pointer(&p.dst.Data[i]), src: unsafe.Pointer(&src.Data[i*across]),
			dstLine: 4 * p.dst.Row, srcLine: 4 * step,
			width: n, k: p.k, ahead: 4 * p.ahead, lanes: 1<<n - 1,
		}
		kernel(&s.packing)
	}
}

// transposes is transposeLines with kernels.
func (l *level) transposes(p *packing) {
	k := p.k
	if p.k &^= 3; p.k > 0 {
		l.transpose[p.width](p)
	}
	if p.k < k {
		p.dst, p.src, p.k = unsafe.Add(p.dst, p.k*p.dstLine), unsafe.Add(p.src, p.k*4), k-p.k
		transposeLines(p)
	}
}
