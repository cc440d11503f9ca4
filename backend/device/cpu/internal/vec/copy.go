package vec

import "unsafe"

// Element is what can be copied.
type Element interface {
	~bool | ~int8 | ~uint8 | ~int16 | ~uint16 | ~int32 | ~uint32 | ~float32 | ~int64 | ~uint64 | ~float64
}

// Copy is a plan to bring elements that lie at strides into one piece, row after row. It does permutations of axes,
// slices, and broadcasts (stride 0).
type Copy struct {
	axes  []axis // without those that could be merged
	kind  copyKind
	along int // the axis of stride 1 of a transposition
	units int
}

type axis struct{ size, src, dst int }

type copyKind int

const (
	copyRows      copyKind = iota // the last axis has stride 1
	copyRepeat                    // the last axis has stride 0
	copyTranspose                 // another axis has stride 1
	copyElements                  // none has
)

// NewCopy plans a copy to an array of these sizes, of which an element at (i, j, ...) comes from
// src[i*strides[0]+j*strides[1]+...].
func NewCopy(sizes, strides []int) Copy {
	c := Copy{axes: mergeAxes(sizes, strides), units: 1}
	last := len(c.axes) - 1
	switch c.axes[last].src {
	case 1:
		c.kind = copyRows
	case 0:
		c.kind = copyRepeat
	default:
		c.kind = copyElements
		for i, a := range c.axes {
			if a.src == 1 {
				c.kind, c.along = copyTranspose, i
			}
		}
	}
	for i, a := range c.axes[:last] {
		n := a.size
		if c.kind == copyTranspose && i == c.along {
			n = (n + transposeBlock - 1) / transposeBlock
		}
		c.units *= n
	}
	if c.axes[last].size == 0 {
		c.units = 0
	}
	return c
}

// mergeAxes leaves out axes of size 1 and joins those that follow one another in both arrays. At least one is left.
func mergeAxes(sizes, strides []int) (axes []axis) {
	dst := 1
	for i := len(sizes) - 1; i >= 0; i-- {
		a := axis{sizes[i], strides[i], dst}
		dst *= a.size
		if a.size == 1 {
			continue
		}
		if n := len(axes); n > 0 && axes[n-1].src*axes[n-1].size == a.src {
			axes[n-1].size *= a.size
			continue
		}
		axes = append(axes, a)
	}
	if len(axes) == 0 {
		return []axis{{1, 1, 1}}
	}
	for i, j := 0, len(axes)-1; i < j; i, j = i+1, j-1 {
		axes[i], axes[j] = axes[j], axes[i]
	}
	return axes
}

// Units is the number of parts of about equal size that can be copied one by one, in any order.
func (c Copy) Units() int { return c.units }

// offsets is where a unit begins.
type offsets struct{ dst, src, block int }

// at returns where unit u begins. block is its first element along the axis that is transposed.
func (c Copy) at(u int) (p offsets) {
	for i := len(c.axes) - 2; i >= 0; i-- {
		a := c.axes[i]
		n, step := a.size, 1
		if c.kind == copyTranspose && i == c.along {
			n, step = (n+transposeBlock-1)/transposeBlock, transposeBlock
			p.block = u % n * step
		}
		k := u % n * step
		p.dst, p.src = p.dst+k*a.dst, p.src+k*a.src
		u /= n
	}
	return p
}

// Run copies the units from to to-1.
func Run[T Element](l Level, c Copy, dst, src []T, from, to int) {
	last := c.axes[len(c.axes)-1]
	for u := from; u < to; u++ {
		p := c.at(u)
		d, s := dst[p.dst:], src[p.src:]
		switch c.kind {
		case copyRows:
			copy(d[:last.size], s)
		case copyRepeat:
			repeat(d[:last.size], s[0])
		case copyTranspose:
			a := c.axes[c.along]
			transposeOf(l, d, s, Block{last.size, min(transposeBlock, a.size-p.block), a.dst, last.src})
		default:
			for i := range d[:last.size] {
				d[i] = s[i*last.src]
			}
		}
	}
}

// repeat writes x into each element, each time copying all that there is.
func repeat[T Element](dst []T, x T) {
	dst[0] = x
	for n := 1; n < len(dst); n *= 2 {
		copy(dst[n:], dst[:n])
	}
}

// transposeOf is Transpose for every type. Those of 32 bits go as floats.
func transposeOf[T Element](l Level, dst, src []T, b Block) {
	if unsafe.Sizeof(dst[0]) == 4 {
		Transpose(l, asFloats(dst), asFloats(src), b)
		return
	}
	transposeAny(dst, src, b)
}

// asFloats returns a slice of elements of 32 bits as one of floats.
func asFloats[T Element](x []T) []float32 {
	return unsafe.Slice((*float32)(unsafe.Pointer(unsafe.SliceData(x))), len(x))
}
