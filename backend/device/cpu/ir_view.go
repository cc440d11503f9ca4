package cpu

import "slices"

// view says where the elements of a value lie in a tensor: element (i, j, ...) is off + i*strides[0] + j*strides[1] + ...
// elements from its beginning. A stride of 0 repeats. Reshapes, transposes, slices and broadcasts are views as a rule:
// they cost nothing, and what reads them reads through them.
type view struct {
	of      *tensor
	off     int
	dims    []int
	strides []int
}

// whole is the view of all of a tensor, rows first.
func whole(t *tensor, dims []int) view { return view{of: t, dims: dims, strides: rowMajor(dims)} }

// rowMajor returns the strides of a tensor whose last axis is contiguous.
func rowMajor(dims []int) []int {
	strides := make([]int, len(dims))
	n := 1
	for i := len(dims) - 1; i >= 0; i-- {
		strides[i] = n
		n *= dims[i]
	}
	return strides
}

// volume is the number of elements.
func volume(dims []int) int {
	n := 1
	for _, d := range dims {
		n *= d
	}
	return n
}

// collapse returns an equal walk over the elements with as few axes as possible, and no axis of 1.
func (v view) collapse() view {
	c := view{of: v.of, off: v.off}
	for i, d := range v.dims {
		if d == 1 {
			continue
		}
		if k := len(c.dims) - 1; k >= 0 && c.strides[k] == d*v.strides[i] {
			c.dims[k] *= d
			c.strides[k] = v.strides[i]
			continue
		}
		c.dims = append(c.dims, d)
		c.strides = append(c.strides, v.strides[i])
	}
	return c
}

// contiguous reports whether the elements lie one after another.
func (v view) contiguous() bool {
	c := v.collapse()
	return len(c.dims) == 0 || len(c.dims) == 1 && c.strides[0] == 1
}

func (v view) transpose(axes []int) view {
	t := view{of: v.of, off: v.off}
	for _, a := range axes {
		t.dims = append(t.dims, v.dims[a])
		t.strides = append(t.strides, v.strides[a])
	}
	return t
}

func (v view) broadcast(dims, axes []int) view {
	b := view{of: v.of, off: v.off, dims: dims, strides: make([]int, len(dims))}
	for i, a := range axes {
		if v.dims[i] == dims[a] {
			b.strides[a] = v.strides[i]
		}
	}
	return b
}

func (v view) slice(starts, steps, dims []int) view {
	s := view{of: v.of, off: v.off, dims: dims, strides: slices.Clone(v.strides)}
	for i := range dims {
		s.off += starts[i] * v.strides[i]
		s.strides[i] *= steps[i]
	}
	return s
}

func (v view) reverse(axes []int) view {
	r := view{of: v.of, off: v.off, dims: v.dims, strides: slices.Clone(v.strides)}
	for _, a := range axes {
		r.off += (v.dims[a] - 1) * v.strides[a]
		r.strides[a] = -v.strides[a]
	}
	return r
}

// reshape returns the same elements under other axes. It fails where that takes a copy.
func (v view) reshape(dims []int) (view, bool) {
	r := view{of: v.of, off: v.off, dims: dims, strides: make([]int, len(dims))}
	if volume(dims) == 0 {
		return r, true
	}
	c := v.collapse()
	i, left := len(c.dims)-1, 1 // axis of c that is being split, and what is left of it
	stride := 0
	if i >= 0 {
		left, stride = c.dims[i], c.strides[i]
	}
	for k := len(dims) - 1; k >= 0; k-- {
		if dims[k] == 1 {
			continue
		}
		if left == 1 {
			i--
			left, stride = c.dims[i], c.strides[i]
		}
		if left%dims[k] != 0 {
			return view{}, false
		}
		r.strides[k] = stride
		stride *= dims[k]
		left /= dims[k]
	}
	return r, true
}

// walk calls body with the offset of each position of the axes, in order.
func (v view) walk(body func(off int)) {
	if volume(v.dims) == 0 {
		return
	}
	index := make([]int, len(v.dims))
	off := v.off
	for {
		body(off)
		k := len(index) - 1
		for ; k >= 0; k-- {
			index[k]++
			off += v.strides[k]
			if index[k] < v.dims[k] {
				break
			}
			off -= index[k] * v.strides[k]
			index[k] = 0
		}
		if k < 0 {
			return
		}
	}
}

// at returns the offset of the element with number i, rows first.
func (v view) at(i int) int {
	off := v.off
	for k := len(v.dims) - 1; k >= 0; k-- {
		off += i % v.dims[k] * v.strides[k]
		i /= v.dims[k]
	}
	return off
}

// after returns v without its first axes.
func (v view) after(n int) view {
	return view{of: v.of, off: v.off, dims: v.dims[n:], strides: v.strides[n:]}
}

// without returns v at the first position of an axis, which is left out.
func (v view) without(ax int) view {
	rest := view{of: v.of, off: v.off}
	for i := range v.dims {
		if i != ax {
			rest.dims = append(rest.dims, v.dims[i])
			rest.strides = append(rest.strides, v.strides[i])
		}
	}
	return rest
}

// offsets lists the offsets of the elements.
func (v view) offsets() (list []int) {
	v.walk(func(off int) { list = append(list, off) })
	return list
}

// uniform reports whether a view shows one element.
func (v view) uniform() bool {
	c := v.collapse()
	return !v.of.virtual && (len(c.dims) == 0 || slices.Max(c.strides) == 0 && slices.Min(c.strides) == 0)
}

// perRow returns the view that has one element for each row of a view that repeats it along the row, collapsed, or nil.
func (v view) perRow(inner int) *view {
	c := v.collapse()
	k := len(c.dims) - 1
	if k < 0 || c.strides[k] != 0 || c.dims[k]%inner != 0 || v.of.virtual {
		return nil
	}
	c.dims[k] /= inner
	c = c.collapse()
	return &c
}

// swappedRow is the length of the rows of a view that shows the parts of each row of a tensor in reverse order, as the
// swapped halves of RoPE are.
func (v view) swappedRow() (length int, ok bool) {
	c := v.collapse()
	k := len(c.dims) - 2
	if k < 0 || k > 1 || c.strides[k+1] != 1 || c.strides[k] != -c.dims[k+1] {
		return 0, false
	}
	length = c.dims[k] * c.dims[k+1]
	return length, c.off == length-c.dims[k+1] && (k == 0 || c.strides[0] == length)
}
