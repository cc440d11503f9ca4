package cpu

import (
	"slices"
	"unsafe"

	"github.com/goart-dev/art/backend/device/cpu/internal/vec"
)

// copy writes the elements of a view in row-major order.
func (r *run) copy(s *copyStep) {
	if s.kernel == nil {
		r.copyView(s.out, s.from)
		return
	}
	n := volume(s.from.dims)
	dst := list[uint32](r.ptr(s.out, s.out.off), n)
	src := list[uint32](r.ptr(s.from, s.from.off), s.from.of.count-s.from.off)
	units, parts := s.kernel.Units(), 1
	if n >= threshold {
		parts = min(units, 4*r.pool.Workers())
	}
	r.pool.For(parts, func(i int) { vec.Run(r.level, *s.kernel, dst, src, units*i/parts, units*(i+1)/parts) })
}

// copyView writes the elements of from, collapsed, one after another to to.
func (r *run) copyView(to, from view) {
	n := volume(from.dims)
	parts := 1
	if n > threshold {
		parts = 4 * r.pool.Workers()
	}
	r.pool.For(parts, func(i int) {
		first, end := n*i/parts, n*(i+1)/parts
		loadView(r.level, r.ptr(to, to.off+first), r.at[from.of.id], from, first, end-first)
	})
}

// concat copies parts of operands.
func (r *run) concat(s *concatStep) {
	r.pool.For(len(s.parts), func(i int) {
		p := &s.parts[i]
		runMove(&p.move, r.ptr(p.to, p.to.off), r.ptr(p.from, p.from.off))
	})
}

// pad fills the result and copies what is left of the operand over it.
func (r *run) pad(s *padStep) {
	fill(r.ptr(s.out, s.out.off), r.ptr(s.with, s.with.off), s.out.of.count, s.out.of.size)
	runMove(&s.move, r.ptr(s.out, s.to.off), r.ptr(s.from, s.from.off))
}

// start reads scalars, and moves them so that a window of the given size lies inside.
func (r *run) start(scalars []view, dims, size []int) []int {
	pos := make([]int, len(dims))
	for i, s := range scalars {
		pos[i] = min(max(integer(r.ptr(s, s.off), s.of.kind), 0), dims[i]-size[i])
	}
	return pos
}

// dynamicSlice copies a region whose start is computed.
func (r *run) dynamicSlice(s *dynamicSliceStep) {
	pos := r.start(s.starts, s.x.dims, s.out.dims)
	r.copyView(s.out, s.x.slice(pos, slices.Repeat([]int{1}, len(pos)), s.out.dims).collapse())
}

// dynamicUpdate replaces a region whose start is computed.
func (r *run) dynamicUpdate(s *dynamicUpdateStep) {
	r.copyOperand(&s.update)
	ones := slices.Repeat([]int{1}, len(s.out.dims))
	to := s.out.slice(r.start(s.starts, s.out.dims, s.with.dims), ones, s.with.dims)
	runMove(&s.move, r.ptr(s.out, to.off), r.ptr(s.with, s.with.off))
}

// copyOperand copies the operand of an update to the result, unless they share their memory.
func (r *run) copyOperand(u *update) {
	if r.at[u.operand.of.id] != r.at[u.out.of.id] {
		r.copyView(u.out, u.operand)
	}
}

// runMove copies: dst and src are the first elements.
func runMove(m *move, dst, src unsafe.Pointer) {
	k := len(m.dims) - 1
	var index [maxAxes]int
	if slices.Contains(m.dims, 0) {
		return
	}
	to, from := 0, 0
	for {
		moveLine(m, unsafe.Add(dst, to*m.size), unsafe.Add(src, from*m.size), m.dims[k])
		i := k - 1
		for ; i >= 0; i-- {
			index[i]++
			to, from = to+m.to[i], from+m.from[i]
			if index[i] < m.dims[i] {
				break
			}
			to, from = to-index[i]*m.to[i], from-index[i]*m.from[i]
			index[i] = 0
		}
		if i < 0 {
			return
		}
	}
}

// moveLine copies along the last axis.
func moveLine(m *move, dst, src unsafe.Pointer, n int) {
	k := len(m.dims) - 1
	if m.to[k] == 1 {
		line(dst, src, n, m.from[k], m.size)
		return
	}
	for i := range n {
		line(unsafe.Add(dst, i*m.to[k]*m.size), unsafe.Add(src, i*m.from[k]*m.size), 1, 1, m.size)
	}
}
