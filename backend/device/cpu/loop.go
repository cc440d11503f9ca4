package cpu

import (
	"sync"
	"unsafe"

	"github.com/gomlx/compute"

	"github.com/goart-dev/art/backend/device/cpu/internal/vec"
)

// loop runs a group: for each block of elements, each instruction.
type loop struct {
	numel, inner, block int // elements in all, of a row (0 without rows), and of a block, a multiple of inner
	rows                int // of a block
	instrs              []instr
	registers           int
	offsets             []int // of each register in the scratch memory; -1 for those that point to tensors
	scratch             int   // bytes
	level               vec.Level
	work                int // instructions before some were combined

	ahead [][]ahead // by instruction; nil: nothing is fetched

	piece    int     // of a row, where rows are too long for a cache and are computed piece by piece; 0 otherwise
	phases   []phase // of a row then
	sums     int     // reductions
	crossing []int   // registers that hold all of a row, since a later phase reads them
	sizes    []int   // bytes of their elements
}

// instr is what is done with a block.
type instr struct {
	do     action
	dst    int    // register
	src    [3]int // registers
	v      view   // of what is loaded, collapsed, or stored to
	size   int    // bytes of an element of dst
	row    bool   // works on one element for each row
	kernel kernel
	scalar scalarKernel
	reduce func(dst, x unsafe.Pointer, rows, n int)
	pieces *pieces // of a reduction; nil if it takes a row at once
	sum    int     // its number, of those with pieces
	cheap  bool    // computed again rather than stored

	op   compute.OpType // of float32; OpTypeInvalid of other types
	left bool           // the number of applyOne and applyRows is the left operand
	all  *combined      // of combine
}

type action int

const (
	point     action = iota // dst points to the elements of a tensor
	repeat                  // dst is filled with one element, before the first block
	cycle                   // dst is filled through a view that is the same for all blocks, before the first one
	fetch                   // dst is filled through a view, or points to what it shows
	fixed                   // dst points to one element of a tensor
	apply                   // dst = kernel(src...)
	applyOne                // dst = scalar(src[0], the element src[1])
	applyRows               // row of dst = scalar(row of src[0], src[1][row])
	shrink                  // dst[row] = reduction of the row of src[0]
	spread                  // row of dst = src[0][row]
	turn                    // dst is src[0] with the parts of each row in turned order, as a view says
	combine                 // what several instructions do
)

// block is a range of elements, and of rows.
type block struct{ first, n, row, rows int }

// tiles is memory of a chain that stands for a part of tensors, from their first element on.
type tiles struct {
	first int
	base  [2]unsafe.Pointer
}

// worker is the state of a goroutine that runs a loop. Loops share them.
type worker struct {
	memory    span
	registers []unsafe.Pointer
	tiles     tiles
	sums      []partial
	call      vec.FusedCall
}

var workersPool = sync.Pool{New: func() any { return new(worker) }}

// partsEach is how many parts of a loop each worker gets: workers are not equally fast at all times, and with 4 the one that was
// done first waited for 15 % of a loop.
const partsEach = 12

// threshold is the number of elements times instructions that is worth a second worker.
const threshold = 1 << 15

func (l *loop) run(r *run) {
	blocks := (l.numel + l.block - 1) / l.block
	if blocks == 0 {
		return
	}
	parts := min(blocks, partsEach*r.device.pool.Workers())
	if l.numel*l.work < threshold {
		parts = 1
	}
	r.device.pool.For(parts, func(i int) {
		w := l.worker()
		defer workersPool.Put(w)
		l.begin(r, w)
		for b := blocks * i / parts; b < blocks*(i+1)/parts; b++ {
			if next := b + 1; l.ahead != nil && next < blocks*(i+1)/parts {
				l.runAhead(r, w, l.at(b), l.at(next))
				continue
			}
			l.runBlock(r, w, l.at(b))
		}
	})
}

func (l *loop) at(i int) block {
	b := block{first: i * l.block}
	b.n = min(l.block, l.numel-b.first)
	if b.row, b.rows = i*l.rows, l.rows; b.n < l.block && l.inner > 0 {
		b.rows = b.n / l.inner
	}
	return b
}

// each is the number of elements of a row of a block, or of a piece of one.
func (l *loop) each(b block) int {
	return min(l.inner, b.n)
}

// worker returns the state of a goroutine, with the registers that lie in its memory set.
func (l *loop) worker() *worker {
	w := workersPool.Get().(*worker)
	if w.memory.size < l.scratch {
		w.memory = newSpan(rounded(l.scratch))
	}
	if len(w.registers) < l.registers {
		w.registers = make([]unsafe.Pointer, l.registers)
	}
	if len(w.sums) < l.sums {
		w.sums = make([]partial, l.sums)
	}
	for i, off := range l.offsets {
		if off >= 0 {
			w.registers[i] = unsafe.Add(w.memory.base, off)
		}
	}
	return w
}

// begin fills the registers that are the same for all blocks.
func (l *loop) begin(r *run, w *worker) {
	most := l.block
	if l.piece > 0 {
		most = l.piece
	}
	for i := range l.instrs {
		switch in := &l.instrs[i]; in.do {
		case repeat:
			n := most
			if in.row {
				n = l.rows
			}
			fill(w.registers[in.dst], r.ptr(in.v, in.v.off), n, in.size)
		case cycle:
			load(l.level, w.registers[in.dst], r.at[in.v.of.id], in.v, 0, min(most, l.numel))
		}
	}
}

func (l *loop) runBlock(r *run, w *worker, b block) {
	if l.piece > 0 {
		l.runPhases(r, w, b)
		return
	}
	for i := range l.instrs {
		l.step(r, w, &l.instrs[i], b)
	}
}

// runAhead computes a block, and fetches the memory of the next.
func (l *loop) runAhead(r *run, w *worker, b, next block) {
	for i := range l.instrs {
		l.step(r, w, &l.instrs[i], b)
		l.fetchNext(r, i, next)
	}
}

// step does one instruction for a block.
func (l *loop) step(r *run, w *worker, in *instr, b block) {
	reg := w.registers
	first, n := b.first, b.n
	if in.row {
		first, n = b.row, b.rows
	}
	switch in.do {
	case point:
		if t := in.v.of; t.virtual {
			reg[in.dst] = unsafe.Add(w.tiles.base[t.tile-1], (first-w.tiles.first)*t.size)
		} else {
			reg[in.dst] = r.ptr(in.v, in.v.off+first)
		}
	case fetch:
		l.fetch(r, w, in, first, n)
	case fixed:
		reg[in.dst] = r.ptr(in.v, in.v.off)
	case apply:
		in.kernel(reg[in.dst], reg[in.src[0]], reg[in.src[1]], reg[in.src[2]], n)
	case applyOne:
		in.scalar(reg[in.dst], reg[in.src[0]], *(*float32)(reg[in.src[1]]), n)
	case applyRows:
		each := l.each(b)
		for k := range b.rows {
			in.scalar(unsafe.Add(reg[in.dst], k*each*in.size), unsafe.Add(reg[in.src[0]], k*each*4), *(*float32)(unsafe.Add(reg[in.src[1]], 4*k)), each)
		}
	case shrink:
		l.shrink(w, in, b)
	case combine:
		l.combined(w, in.all, b)
	case turn:
		l.turn(reg[in.dst], reg[in.src[0]], in.v, n)
	case spread:
		each := l.each(b)
		for k := range b.rows {
			fill(unsafe.Add(reg[in.dst], k*each*in.size), unsafe.Add(reg[in.src[0]], k*in.size), each, in.size)
		}
	}
}

// fetch copies what a view shows, unless that lies in one piece.
func (l *loop) fetch(r *run, w *worker, in *instr, first, n int) {
	v, base := &in.v, r.at[in.v.of.id]
	p := v.find(first)
	if k := len(v.dims) - 1; v.strides[k] == 1 && p.index[k]+n <= v.dims[k] {
		w.registers[in.dst] = unsafe.Add(base, p.off*in.size)
		return
	}
	w.registers[in.dst] = unsafe.Add(w.memory.base, l.offsets[in.dst])
	v.load(l.level, w.registers[in.dst], base, p, n)
}

// turn copies rows, and begins with their last parts.
func (l *loop) turn(dst, src unsafe.Pointer, v view, n int) {
	k := len(v.dims) - 1
	parts, bytes := v.dims[k-1], v.dims[k]*v.of.size
	row := vec.Plane{Next: parts * bytes, Lines: parts, Step: -bytes, Bytes: bytes}
	vec.Lines(l.level, dst, unsafe.Add(src, (parts-1)*bytes), n/(parts*v.dims[k]), &row)
}

// shrink reduces the rows of a block, or goes on with the reduction of one.
func (l *loop) shrink(w *worker, in *instr, b block) {
	dst, src := w.registers[in.dst], w.registers[in.src[0]]
	if l.piece == 0 {
		in.reduce(dst, src, b.rows, l.inner)
		return
	}
	at := b.first - b.row*l.inner
	sum := &w.sums[in.sum]
	if at == 0 {
		in.pieces.begin(sum)
	}
	*(*float32)(dst) = in.pieces.next(sum, list[float32](src, b.n), at+b.n == l.inner)
}

// fill writes n copies of an element.
func fill(dst, src unsafe.Pointer, n, size int) {
	switch size {
	case 1:
		fillWith[uint8](dst, src, n)
	case 2:
		fillWith[uint16](dst, src, n)
	case 4:
		fillWith[uint32](dst, src, n)
	case 8:
		fillWith[uint64](dst, src, n)
	}
}

func fillWith[T any](dst, src unsafe.Pointer, n int) {
	out := list[T](dst, n)
	if n == 0 {
		return
	}
	out[0] = *(*T)(src)
	for done := 1; done < n; done *= 2 {
		copy(out[done:], out[:done]) // vectors, at any size of element
	}
}

// mostAxes is how many axes a view may have that is copied, when all that can be joined are.
const mostAxes = 16

// load copies elements [first, first+n) of a collapsed view, of the tensor at base, to dst.
func load(l vec.Level, dst, base unsafe.Pointer, v view, first, n int) {
	size := v.of.size
	switch {
	case n == 0:
	case len(v.dims) == 0:
		fill(dst, unsafe.Add(base, v.off*size), n, size)
	default:
		v.load(l, dst, base, v.find(first), n)
	}
}

// position is where an element of a view is, and lies.
type position struct {
	index [mostAxes]int
	off   int
}

// find returns where the element with number i is. Processors take long for divisions of 64 bits, and blocks are short.
func (v *view) find(i int) (p position) {
	p.off = v.off
	for k := len(v.dims) - 1; k > 0; k-- {
		rest := i / v.dims[k]
		p.index[k] = i - rest*v.dims[k]
		p.off += p.index[k] * v.strides[k]
		i = rest
	}
	p.index[0] = i
	p.off += i * v.strides[0]
	return p
}

// load copies n elements from a position on.
func (v *view) load(l vec.Level, dst, base unsafe.Pointer, p position, n int) {
	size, k := v.of.size, len(v.dims)-1
	index, off := &p.index, p.off
	for done := 0; done < n; {
		run := min(n-done, v.dims[k]-index[k])
		to, at := unsafe.Add(dst, done*size), unsafe.Add(base, off*size)
		if planes, lines := v.linesFrom(index, n-done); lines > 1 && v.strides[k] == 1 {
			p := vec.Plane{Lines: lines, Step: v.strides[k-1] * size, Bytes: run * size}
			if planes > 1 {
				p.Next = v.strides[k-2] * size
				off += (planes - 1) * v.strides[k-2]
				index[k-2] += planes - 1
			}
			vec.Lines(l, to, at, planes, &p)
			run *= planes * lines
			off += (lines - 1) * v.strides[k-1]
			index[k-1] += lines - 1
		} else {
			line(to, at, run, v.strides[k], size)
			off -= index[k] * v.strides[k]
			index[k] = 0
		}
		done += run
		for i := k - 1; i >= 0; i-- {
			index[i]++
			off += v.strides[i]
			if index[i] < v.dims[i] {
				break
			}
			off -= index[i] * v.strides[i]
			index[i] = 0
		}
	}
}

// linesFrom is how many planes of how many lines of the last axis of v the next n elements from an index on begin with, until the axis
// before both ends.
func (v *view) linesFrom(index *[mostAxes]int, n int) (planes, lines int) {
	k := len(v.dims) - 1
	if k == 0 || index[k] > 0 {
		return 0, 0
	}
	lines = v.dims[k-1] - index[k-1]
	plane := lines * v.dims[k]
	switch {
	case plane > n:
		return 1, n / v.dims[k]
	case k == 1 || index[k-1] > 0 || 2*plane > n:
		return 1, lines
	}
	return min(n/plane, v.dims[k-2]-index[k-2]), lines
}

// line copies n elements that are stride apart.
func line(dst, src unsafe.Pointer, n, stride, size int) {
	switch {
	case stride == 1:
		copy(bytesAt(dst, n*size), bytesAt(src, n*size))
	case stride == 0:
		fill(dst, src, n, size)
	case size == 4:
		pick[uint32](dst, src, n, stride)
	case size == 8:
		pick[uint64](dst, src, n, stride)
	case size == 2:
		pick[uint16](dst, src, n, stride)
	default:
		pick[uint8](dst, src, n, stride)
	}
}

func pick[T any](dst, src unsafe.Pointer, n, stride int) {
	step := stride * int(unsafe.Sizeof(*new(T)))
	for i := range list[T](dst, n) {
		*(*T)(unsafe.Add(dst, i*int(unsafe.Sizeof(*new(T))))) = *(*T)(unsafe.Add(src, i*step))
	}
}
