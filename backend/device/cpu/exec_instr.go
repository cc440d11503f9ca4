package cpu

import (
	"unsafe"

	"github.com/goart-dev/art/backend/device/cpu/internal/vec"
)

// step does one instruction for a block.
func (l *loopRunner) step(r *run, w *worker, in *instruction, b block) {
	reg := w.registers
	first, n := b.first, b.n
	if in.row {
		first, n = b.row, b.rows
	}
	switch in.do {
	case doAlias:
		if t := in.v.of; t.virtual {
			reg[in.dst] = unsafe.Add(w.tiles.base[t.tile-1], (first-w.tiles.first)*t.size)
		} else {
			reg[in.dst] = r.ptr(in.v, in.v.off+first)
		}
	case doLoad:
		l.load(r, w, in, first, n)
	case doAliasOne:
		reg[in.dst] = r.ptr(in.v, in.v.off)
	case doApply:
		in.kernel(reg[in.dst], reg[in.src[0]], reg[in.src[1]], reg[in.src[2]], n)
	case doApplyScalar:
		in.scalar(reg[in.dst], reg[in.src[0]], *(*float32)(reg[in.src[1]]), n)
	case doApplyRows:
		l.applyRows(reg, in, b)
	case doReduce:
		l.reduce(w, in, b)
	case doCombine:
		l.combined(w, in.instr.kernel, b)
	case doSwapHalves:
		l.swapHalves(reg[in.dst], reg[in.src[0]], in.v, n)
	case doBroadcast:
		each := l.each(b)
		for k := range b.rows {
			fill(unsafe.Add(reg[in.dst], k*each*in.size), unsafe.Add(reg[in.src[0]], k*in.size), each, in.size)
		}
	}
}

// load copies what a view shows, unless that is contiguous.
func (l *loopRunner) load(r *run, w *worker, in *instruction, first, n int) {
	v, base := &in.v, r.at[in.v.of.id]
	p := find(v, first)
	if k := len(v.dims) - 1; v.strides[k] == 1 && p.index[k]+n <= v.dims[k] {
		w.registers[in.dst] = unsafe.Add(base, p.off*in.size)
		return
	}
	w.registers[in.dst] = unsafe.Add(w.memory.base, l.offsets[in.dst])
	loadFrom(l.level, w.registers[in.dst], v, base, p, n)
}

// applyRows calls the kernel for each row and its number.
func (l *loopRunner) applyRows(reg []unsafe.Pointer, in *instruction, b block) {
	each := l.each(b)
	for k := range b.rows {
		y := *(*float32)(unsafe.Add(reg[in.src[1]], 4*k))
		in.scalar(unsafe.Add(reg[in.dst], k*each*in.size), unsafe.Add(reg[in.src[0]], k*each*4), y, each)
	}
}

// swapHalves copies rows, and begins with their last parts.
func (l *loopRunner) swapHalves(dst, src unsafe.Pointer, v view, n int) {
	k := len(v.dims) - 1
	parts, bytes := v.dims[k-1], v.dims[k]*v.of.size
	row := vec.Plane{Next: parts * bytes, Lines: parts, Step: -bytes, Bytes: bytes}
	vec.Lines(l.level, dst, unsafe.Add(src, (parts-1)*bytes), n/(parts*v.dims[k]), &row)
}

// reduce reduces the rows of a block, or continues the reduction of one.
func (l *loopRunner) reduce(w *worker, in *instruction, b block) {
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

// combined calls the kernel for a block, or for each of its rows.
func (l *loopRunner) combined(w *worker, c *fusedKernel, b block) {
	reg, call := w.registers, &w.call
	calls := 1
	call.N, call.Ahead = b.n, c.ahead
	if c.rows {
		calls, call.N = b.rows, l.each(b)
	}
	for i, r := range c.scalars {
		call.Scalars[i] = *(*float32)(reg[r])
	}
	for k := range calls {
		off := k * call.N * 4
		for i, r := range c.in {
			call.In[i] = unsafe.Add(reg[r], off)
		}
		for i, r := range c.out {
			call.Out[i] = unsafe.Add(reg[r], off)
		}
		for i, r := range c.scalars {
			if c.each[i] {
				call.Scalars[i] = *(*float32)(unsafe.Add(reg[r], 4*k))
			}
		}
		c.of.Run(l.level, call)
		if c.sum >= 0 {
			*(*float32)(unsafe.Add(reg[c.sum], 4*k)) = call.Sum
		}
	}
}
