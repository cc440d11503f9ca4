package gemm

import (
	"unsafe"

	"github.com/goart-dev/art/backend/device/cpu/internal/cpuid"
	"github.com/goart-dev/art/internal/float16"
)

// level is the kernels of an instruction set. Those of tiles look up the rows of their tile.
type level struct {
	rows, columns  int    // of the largest tile
	full           kernel // of all columns
	narrow         kernel // of 16 columns, where columns is 32
	thin           kernel // and of 8, whose vectors are half as wide: some processors do twice as many of them at once
	half           kernel // for a B of bfloat16; nil: it is widened before
	transB         kernel // of 16 columns, that are contiguous in B and are copied as rows; nil: they are copied before
	broad          kernel // of 48 columns, for up to broadRows rows of a packed A and whole panels of B
	placed         kernel // the same for contiguous rows of A
	wide           kernel // for more columns of few rows of A, all of which are there
	wideColumns    []int  // their number, by rows; 0: there is no such kernel
	stream         kernel // for one row of A, with up to streamRows rows of B in place
	masks          bool   // kernels heed lanes
	oneStage       int    // most rows of A for which a packed B is prefetched in one stage,
	oneStageHalf   int    // and the same for bfloat16,
	near           int    // so many bytes ahead
	reread         int    // rows of a packed B that groups of rows of A read one after another; 0: longBlock
	copy           func(*packing)
	transpose      func(*packing) // for a multiple of 4 lines; nil: they are transposed in Go
	transposeWidth int            // most numbers of a line that it takes
	blocks         func(*packing) // transposes blocks of 32 x 32; nil: they are transposed like others
	widen          func(dst []float32, src []uint16)
	widenFloat16   func(dst []float32, src []uint16)
	scales         func(*scaling) // nil: quantized matrices are read in Go
	dequantize     func(*coded)
	multiply       func(*coded) // for up to multiplyRows rows of A
	multiplyRows   int
	codedRows      int             // most rows of A that they are called for, some after others; 0: there are none
	multiplyTwo    bool            // panels of B at once for one row
	round          func(*rounding) // these are nil where Go does it
	unpack         func(*unpacking)
	sum            func(*summing)
	sumRows        int  // most rows of A of it
	sumClasses     bool // it has kernels for each class of codes, and heeds no lanes
	read           func(p unsafe.Pointer, bytes int)
}

// largest is the rows of the largest tile of a large matmul.
func (l *level) largest() int {
	if l.broad != nil {
		return broadRows
	}
	return l.rows
}

// wideFor is the columns of a wide kernel for so many rows, 0 if there is none.
func (l *level) wideFor(rows int) int {
	if rows < len(l.wideColumns) {
		return l.wideColumns[rows]
	}
	return 0
}

// padded is so many columns, and those after them for which kernels without masks need room.
func (l *level) padded(columns int) int {
	if l.masks {
		return columns
	}
	return ceil(columns, l.columns) * l.columns
}

var portable = level{rows: 4, columns: panel, full: fullPortable, copy: copyLines,
	widen: widenAll, widenFloat16: widenAllFloat16, read: readAll}

func widenAll(dst []float32, src []uint16) {
	for i, v := range src {
		dst[i] = widen(v)
	}
}

func widenAllFloat16(dst []float32, src []uint16) {
	for i, v := range src {
		dst[i] = float16.Float32(v)
	}
}

// levelOf returns the kernels of a level; those of Go where there are no others.
func levelOf(l cpuid.Level) *level {
	if l := assembly(l); l != nil {
		return l
	}
	return &portable
}

// tiles computes the tiles of s, each of so many columns.
func (l *level) tiles(s *scratch, width int, half bool) {
	t, columns := &s.tile, l.columns
	if width == l.wideFor(t.rows) && t.count == 1 && !half {
		t.blocks(l.wide, 0)
		return
	}
	call, size := l.full, 4
	switch {
	case half:
		call, size = l.half, 2
	case width <= 8 && l.thin != nil:
		call = l.thin
	case width <= 16 && l.narrow != nil:
		call = l.narrow
	}
	count, prefetched := t.count, t.earlyStep*max(1, size*columns/64)
	for {
		t.lanes = 1<<min(width, columns) - 1
		t.count = count
		if width >= columns || l.masks {
			t.blocks(call, prefetched)
		} else {
			l.edge(s, call, width, prefetched)
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
func (l *level) edge(s *scratch, call kernel, width, prefetched int) {
	whole := s.tile
	t := &s.tile
	t.c, t.cRow = unsafe.Pointer(&s.edge[0]), 4*l.columns
	for i := range whole.count {
		t.a, t.b = unsafe.Add(whole.a, i*t.aStep), unsafe.Add(whole.b, i*t.bStep)
		c := unsafe.Add(whole.c, i*whole.cStep)
		if t.mode != fresh {
			for r := range t.rows {
				copy(s.edge[r*l.columns:], floats(unsafe.Add(c, r*whole.cRow), width))
			}
		}
		t.count = 1
		t.blocks(call, prefetched)
		for r := range t.rows {
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
	kernel, step, across, most := l.transposes, src.Col, src.Col, l.transposeWidth
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
		l.transpose(p)
	}
	if p.k < k {
		p.dst, p.src, p.k = unsafe.Add(p.dst, p.k*p.dstLine), unsafe.Add(p.src, p.k*4), k-p.k
		transposeLines(p)
	}
}
