package cpu

import "unsafe"

// copyStep writes the elements of a view one after another.
type copyStep struct{ to, from view } // from is collapsed, to contiguous

func newCopy(to, from view) step { return copyStep{to, from.collapse()} }

func (s copyStep) run(r *run) { copyView(r, s.to, s.to.off, s.from) }

// copyView writes the elements of from, collapsed, to consecutive places of to's tensor, which begin at off.
func copyView(r *run, to view, off int, from view) {
	n := volume(from.dims)
	parts := 1
	if n > threshold {
		parts = 4 * r.device.pool.Workers()
	}
	r.device.pool.For(parts, func(i int) {
		first, end := n*i/parts, n*(i+1)/parts
		load(r.ptr(to, off+first), r.at[from.of.id], from, first, end-first)
	})
}

// copyInto writes the elements of from to the places of to, in order. Both have the same axes.
func copyInto(r *run, to, from view) {
	if len(to.dims) == 0 {
		copy(bytesAt(r.ptr(to, to.off), to.of.size), bytesAt(r.ptr(from, from.off), to.of.size))
		return
	}
	k := len(to.dims) - 1
	n, size := to.dims[k], to.of.size
	at := offsetsOf(from.rows())
	i := 0
	to.rows().walk(func(off int) {
		src := r.ptr(from, at[i])
		i++
		dst := r.ptr(to, off)
		if to.strides[k] == 1 {
			line(dst, src, n, from.strides[k], size)
			return
		}
		for j := range n {
			line(unsafe.Add(dst, j*to.strides[k]*size), unsafe.Add(src, j*from.strides[k]*size), 1, 1, size)
		}
	})
}

// offsetsOf lists the offsets of a view's elements.
func offsetsOf(v view) (list []int) {
	v.walk(func(off int) { list = append(list, off) })
	return list
}
