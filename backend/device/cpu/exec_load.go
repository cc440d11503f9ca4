package cpu

import (
	"unsafe"

	"github.com/goart-dev/art/backend/device/cpu/internal/vec"
)

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

// maxAxes is how many axes a view or a move may have.
const maxAxes = 16

// loadView copies elements [first, first+n) of a collapsed view, of the tensor at base, to dst.
func loadView(l vec.Level, dst, base unsafe.Pointer, v view, first, n int) {
	size := v.of.size
	switch {
	case n == 0:
	case len(v.dims) == 0:
		fill(dst, unsafe.Add(base, v.off*size), n, size)
	default:
		loadFrom(l, dst, &v, base, find(&v, first), n)
	}
}

// position is the index of an element of a view, and its offset.
type position struct {
	index [maxAxes]int
	off   int
}

// find returns the position of the element with number i. Divisions of 64 bits are slow, and blocks are short.
func find(v *view, i int) (p position) {
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

// loadFrom copies n elements from a position on.
func loadFrom(l vec.Level, dst unsafe.Pointer, v *view, base unsafe.Pointer, p position, n int) {
	size, k := v.of.size, len(v.dims)-1
	index, off := &p.index, p.off
	for done := 0; done < n; {
		run := min(n-done, v.dims[k]-index[k])
		to, at := unsafe.Add(dst, done*size), unsafe.Add(base, off*size)
		if planes, lines := linesFrom(v, index, n-done); lines > 1 && v.strides[k] == 1 {
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

// linesFrom is how many planes of how many lines of the last axis of v the next n elements from an index on begin with, until
// the axis before both ends.
func linesFrom(v *view, index *[maxAxes]int, n int) (planes, lines int) {
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
