package exec

import (
	"unsafe"

	"github.com/goart-dev/art/backend/device/cpu/internal/ir"
	"github.com/goart-dev/art/backend/device/cpu/internal/memory"
	"github.com/goart-dev/art/backend/device/cpu/internal/vec"
)

// step does one instruction for a block.
func (l *loopRunner) step(r *run, w *worker, in *instruction, b block) {
	reg := w.registers
	first, n := b.first, b.n
	if in.Row {
		first, n = b.row, b.rows
	}
	switch in.Do {
	case ir.Alias:
		if t := in.View.Of; t.Virtual {
			reg[in.Dst] = unsafe.Add(w.tiles.base[t.Tile-1], (first-w.tiles.first)*t.Size)
		} else {
			reg[in.Dst] = r.ptr(in.View, in.View.Off+first)
		}
	case ir.Load:
		l.load(r, w, in, first, n)
	case ir.AliasOne:
		reg[in.Dst] = r.ptr(in.View, in.View.Off)
	case ir.Apply:
		in.kernel(reg[in.Dst], reg[in.Src[0]], reg[in.Src[1]], reg[in.Src[2]], n)
	case ir.ApplyScalar:
		in.scalar(reg[in.Dst], reg[in.Src[0]], *(*float32)(reg[in.Src[1]]), n)
	case ir.ApplyRows:
		each := l.each(b) // a row and its number
		for k := range b.rows {
			y := *(*float32)(unsafe.Add(reg[in.Src[1]], 4*k))
			in.scalar(unsafe.Add(reg[in.Dst], k*each*in.Size), unsafe.Add(reg[in.Src[0]], k*each*4), y, each)
		}
	case ir.Reduce:
		l.reduce(w, in, b)
	case ir.Combine:
		l.combined(w, in.Instr.Kernel, b)
	case ir.SwapHalves:
		l.swapHalves(reg[in.Dst], reg[in.Src[0]], in.View, n)
	case ir.Broadcast:
		each := l.each(b)
		for k := range b.rows {
			fill(unsafe.Add(reg[in.Dst], k*each*in.Size), unsafe.Add(reg[in.Src[0]], k*in.Size), each, in.Size)
		}
	}
}

// load copies what a view shows, unless that is contiguous.
func (l *loopRunner) load(r *run, w *worker, in *instruction, first, n int) {
	v, base := &in.View, r.at[in.View.Of.ID]
	p := find(v, first)
	if k := len(v.Dims) - 1; v.Strides[k] == 1 && p.index[k]+n <= v.Dims[k] {
		w.registers[in.Dst] = unsafe.Add(base, p.off*in.Size)
		return
	}
	w.registers[in.Dst] = unsafe.Add(w.memory.Base, l.Offsets[in.Dst])
	loadFrom(l.level, w.registers[in.Dst], v, base, p, n)
}

// swapHalves copies rows, and begins with their last parts.
func (l *loopRunner) swapHalves(dst, src unsafe.Pointer, v ir.View, n int) {
	k := len(v.Dims) - 1
	parts, bytes := v.Dims[k-1], v.Dims[k]*v.Of.Size
	row := vec.Plane{Next: parts * bytes, Lines: parts, Step: -bytes, Bytes: bytes}
	vec.Lines(l.level, dst, unsafe.Add(src, (parts-1)*bytes), n/(parts*v.Dims[k]), &row)
}

// reduce reduces the rows of a block, or continues the reduction of one.
func (l *loopRunner) reduce(w *worker, in *instruction, b block) {
	dst, src := w.registers[in.Dst], w.registers[in.Src[0]]
	if l.Piece == 0 {
		in.reduce(dst, src, b.rows, l.Inner)
		return
	}
	at := b.first - b.row*l.Inner
	sum := &w.sums[in.Sum]
	if at == 0 {
		in.pieces.begin(sum)
	}
	*(*float32)(dst) = in.pieces.next(sum, memory.Slice[float32](src, b.n), at+b.n == l.Inner)
}

// combined calls the kernel for a block, or for each of its rows.
func (l *loopRunner) combined(w *worker, c *ir.FusedKernel, b block) {
	reg, call := w.registers, &w.call
	calls := 1
	call.N, call.Ahead = b.n, c.Ahead
	if c.Rows {
		calls, call.N = b.rows, l.each(b)
	}
	for i, r := range c.Scalars {
		call.Scalars[i] = *(*float32)(reg[r])
	}
	for k := range calls {
		off := k * call.N * 4
		for i, r := range c.In {
			call.In[i] = unsafe.Add(reg[r], off)
		}
		for i, r := range c.Out {
			call.Out[i] = unsafe.Add(reg[r], off)
		}
		for i, r := range c.Scalars {
			if c.Each[i] {
				call.Scalars[i] = *(*float32)(unsafe.Add(reg[r], 4*k))
			}
		}
		c.Of.Run(l.level, call)
		if c.Sum >= 0 {
			*(*float32)(unsafe.Add(reg[c.Sum], 4*k)) = call.Sum
		}
	}
}
