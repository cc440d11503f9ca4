package cpu

import (
	"slices"
	"unsafe"

	"github.com/goart-dev/art/backend/device/cpu/internal/vec"
)

// newCopy writes the elements of a view one after another. Elements of four bytes have kernels that transpose.
func newCopy(l vec.Level, to, from view) step {
	from = from.collapse()
	if from.of.size != 4 || slices.ContainsFunc(from.strides, func(s int) bool { return s < 0 }) {
		return stepFunc(func(r *run) { copyView(r, to, to.off, from) })
	}
	plan, n := vec.NewCopy(from.dims, from.strides), volume(from.dims)
	return stepFunc(func(r *run) {
		dst := list[uint32](r.ptr(to, to.off), n)
		src := list[uint32](r.ptr(from, from.off), from.of.count-from.off)
		units, parts := plan.Units(), 1
		if n >= threshold {
			parts = min(units, 4*r.device.pool.Workers())
		}
		r.device.pool.For(parts, func(i int) { vec.Run(l, plan, dst, src, units*i/parts, units*(i+1)/parts) })
	})
}

// copyView writes the elements of from, collapsed, to consecutive places of to's tensor, which begin at off.
func copyView(r *run, to view, off int, from view) {
	n := volume(from.dims)
	parts := 1
	if n > threshold {
		parts = 4 * r.device.pool.Workers()
	}
	r.device.pool.For(parts, func(i int) {
		first, end := n*i/parts, n*(i+1)/parts
		load(r.device.level, r.ptr(to, off+first), r.at[from.of.id], from, first, end-first)
	})
}

// move copies elements from places to places: the same walk over axes, with strides of its own on each side.
type move struct {
	size           int // bytes of an element
	dims, to, from []int
}

// newMove joins the axes of two views of the same dimensions where both allow it. The last axis is walked innermost.
func newMove(to, from view) move {
	m := move{size: to.of.size}
	for i, d := range to.dims {
		if d == 1 {
			continue
		}
		k := len(m.dims) - 1
		if k >= 0 && m.to[k] == d*to.strides[i] && m.from[k] == d*from.strides[i] {
			m.dims[k] *= d
			m.to[k], m.from[k] = to.strides[i], from.strides[i]
			continue
		}
		m.dims, m.to, m.from = append(m.dims, d), append(m.to, to.strides[i]), append(m.from, from.strides[i])
	}
	if len(m.dims) == 0 {
		m.dims, m.to, m.from = []int{1}, []int{1}, []int{1}
	}
	return m
}

// run copies: dst and src are the first elements.
func (m *move) run(dst, src unsafe.Pointer) {
	k := len(m.dims) - 1
	var index [mostAxes]int
	if slices.Contains(m.dims, 0) {
		return
	}
	to, from := 0, 0
	for {
		m.line(unsafe.Add(dst, to*m.size), unsafe.Add(src, from*m.size), m.dims[k])
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

// line copies along the last axis.
func (m *move) line(dst, src unsafe.Pointer, n int) {
	k := len(m.dims) - 1
	if m.to[k] == 1 {
		line(dst, src, n, m.from[k], m.size)
		return
	}
	for i := range n {
		line(unsafe.Add(dst, i*m.to[k]*m.size), unsafe.Add(src, i*m.from[k]*m.size), 1, 1, m.size)
	}
}

// offsetsOf lists the offsets of a view's elements.
func offsetsOf(v view) (list []int) {
	v.walk(func(off int) { list = append(list, off) })
	return list
}
