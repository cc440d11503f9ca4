package ir

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
