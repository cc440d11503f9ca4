package ir

import "slices"

// View says where the elements of a value lie in a tensor: element (i, j, ...) is off + i*strides[0] + j*strides[1] +
// ... elements from its beginning. A stride of 0 repeats. Reshapes, transposes, slices and broadcasts are views as a
// rule: they cost nothing, and what reads them reads through them.
type View struct {
	Of      *Tensor
	Off     int
	Dims    []int
	Strides []int
}

// Whole is the view of all of a tensor, rows first.
func Whole(t *Tensor, dims []int) View { return View{Of: t, Dims: dims, Strides: RowMajor(dims)} }

// RowMajor returns the strides of a tensor whose last axis is contiguous.
func RowMajor(dims []int) []int {
	strides := make([]int, len(dims))
	n := 1
	for i := len(dims) - 1; i >= 0; i-- {
		strides[i] = n
		n *= dims[i]
	}
	return strides
}

// Volume is the number of elements.
func Volume(dims []int) int {
	n := 1
	for _, d := range dims {
		n *= d
	}
	return n
}

// Collapse returns an equal walk over the elements with as few axes as possible, and no axis of 1.
func (v View) Collapse() View {
	c := View{Of: v.Of, Off: v.Off}
	for i, d := range v.Dims {
		if d == 1 {
			continue
		}
		if k := len(c.Dims) - 1; k >= 0 && c.Strides[k] == d*v.Strides[i] {
			c.Dims[k] *= d
			c.Strides[k] = v.Strides[i]
			continue
		}
		c.Dims = append(c.Dims, d)
		c.Strides = append(c.Strides, v.Strides[i])
	}
	return c
}

// Contiguous reports whether the elements lie one after another.
func (v View) Contiguous() bool {
	c := v.Collapse()
	return len(c.Dims) == 0 || len(c.Dims) == 1 && c.Strides[0] == 1
}

// Transpose returns the view with its axes in another order.
func (v View) Transpose(axes []int) View {
	t := View{Of: v.Of, Off: v.Off}
	for _, a := range axes {
		t.Dims = append(t.Dims, v.Dims[a])
		t.Strides = append(t.Strides, v.Strides[a])
	}
	return t
}

// Broadcast repeats the view to other dimensions; axes says which of them its own axes are.
func (v View) Broadcast(dims, axes []int) View {
	b := View{Of: v.Of, Off: v.Off, Dims: dims, Strides: make([]int, len(dims))}
	for i, a := range axes {
		if v.Dims[i] == dims[a] {
			b.Strides[a] = v.Strides[i]
		}
	}
	return b
}

// Slice returns the part that begins at starts, with every steps-th element and other dimensions.
func (v View) Slice(starts, steps, dims []int) View {
	s := View{Of: v.Of, Off: v.Off, Dims: dims, Strides: slices.Clone(v.Strides)}
	for i := range dims {
		s.Off += starts[i] * v.Strides[i]
		s.Strides[i] *= steps[i]
	}
	return s
}

// Reverse returns the view with the elements of some axes in reverse order.
func (v View) Reverse(axes []int) View {
	r := View{Of: v.Of, Off: v.Off, Dims: v.Dims, Strides: slices.Clone(v.Strides)}
	for _, a := range axes {
		r.Off += (v.Dims[a] - 1) * v.Strides[a]
		r.Strides[a] = -v.Strides[a]
	}
	return r
}

// Reshape returns the same elements under other axes. It fails where that takes a copy.
func (v View) Reshape(dims []int) (View, bool) {
	r := View{Of: v.Of, Off: v.Off, Dims: dims, Strides: make([]int, len(dims))}
	if Volume(dims) == 0 {
		return r, true
	}
	c := v.Collapse()
	i, left := len(c.Dims)-1, 1 // axis of c that is being split, and what is left of it
	stride := 0
	if i >= 0 {
		left, stride = c.Dims[i], c.Strides[i]
	}
	for k := len(dims) - 1; k >= 0; k-- {
		if dims[k] == 1 {
			continue
		}
		if left == 1 {
			i--
			left, stride = c.Dims[i], c.Strides[i]
		}
		if left%dims[k] != 0 {
			return View{}, false
		}
		r.Strides[k] = stride
		stride *= dims[k]
		left /= dims[k]
	}
	return r, true
}

// walk calls body with the offset of each position of the axes, in order.
func (v View) walk(body func(off int)) {
	if Volume(v.Dims) == 0 {
		return
	}
	index := make([]int, len(v.Dims))
	off := v.Off
	for {
		body(off)
		k := len(index) - 1
		for ; k >= 0; k-- {
			index[k]++
			off += v.Strides[k]
			if index[k] < v.Dims[k] {
				break
			}
			off -= index[k] * v.Strides[k]
			index[k] = 0
		}
		if k < 0 {
			return
		}
	}
}

// At returns the offset of the element with number i, rows first.
func (v View) At(i int) int {
	off := v.Off
	for k := len(v.Dims) - 1; k >= 0; k-- {
		off += i % v.Dims[k] * v.Strides[k]
		i /= v.Dims[k]
	}
	return off
}

// After returns v without its first axes.
func (v View) After(n int) View {
	return View{Of: v.Of, Off: v.Off, Dims: v.Dims[n:], Strides: v.Strides[n:]}
}

// Without returns v at the first position of an axis, which is left out.
func (v View) Without(ax int) View {
	rest := View{Of: v.Of, Off: v.Off}
	for i := range v.Dims {
		if i != ax {
			rest.Dims = append(rest.Dims, v.Dims[i])
			rest.Strides = append(rest.Strides, v.Strides[i])
		}
	}
	return rest
}

// Offsets lists the offsets of the elements.
func (v View) Offsets() (list []int) {
	v.walk(func(off int) { list = append(list, off) })
	return list
}

// Uniform reports whether a view shows one element.
func (v View) Uniform() bool {
	c := v.Collapse()
	return !v.Of.Virtual && (len(c.Dims) == 0 || slices.Max(c.Strides) == 0 && slices.Min(c.Strides) == 0)
}

// PerRow returns the view that has one element for each row of a view that repeats it along the row, collapsed, or nil.
func (v View) PerRow(inner int) *View {
	c := v.Collapse()
	k := len(c.Dims) - 1
	if k < 0 || c.Strides[k] != 0 || c.Dims[k]%inner != 0 || v.Of.Virtual {
		return nil
	}
	c.Dims[k] /= inner
	c = c.Collapse()
	return &c
}

// SwappedRow is the length of the rows of a view that shows the parts of each row of a tensor in reverse order, as the
// swapped halves of RoPE are.
func (v View) SwappedRow() (length int, ok bool) {
	c := v.Collapse()
	k := len(c.Dims) - 2
	if k < 0 || k > 1 || c.Strides[k+1] != 1 || c.Strides[k] != -c.Dims[k+1] {
		return 0, false
	}
	length = c.Dims[k] * c.Dims[k+1]
	return length, c.Off == length-c.Dims[k+1] && (k == 0 || c.Strides[0] == length)
}

// MaxAxes is how many axes a view that is loaded, or a move, may have when all that can be merged are.
const MaxAxes = 16

// Offsets are those of the elements of a view, in order. Views of one or two axes, which most are when those that can
// be merged are, take no memory: a plan may have an offset for each token of each layer.
type Offsets struct {
	n, first    int
	inner       int // elements of the last axis
	step, outer int // between elements, and between rows of them
	list        []int
}

// NewOffsets returns the offsets of the elements of a view.
func NewOffsets(v View) Offsets {
	o := Offsets{n: Volume(v.Dims), first: v.Off}
	switch c := v.Collapse(); len(c.Dims) {
	case 0:
		o.inner = 1
	case 1:
		o.inner, o.step = c.Dims[0], c.Strides[0]
	case 2:
		o.inner, o.step, o.outer = c.Dims[1], c.Strides[1], c.Strides[0]
	default:
		o.list = v.Offsets()
	}
	return o
}

// Len is their number.
func (o *Offsets) Len() int { return o.n }

// At returns one of them.
func (o *Offsets) At(i int) int {
	switch {
	case i < o.inner:
		return o.first + i*o.step
	case o.list != nil:
		return o.list[i]
	}
	row := i / o.inner
	return o.first + row*o.outer + (i-row*o.inner)*o.step
}

// Bytes is the memory that they take besides the struct.
func (o *Offsets) Bytes() int { return 8 * len(o.list) }
