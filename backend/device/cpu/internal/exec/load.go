package exec

import (
	"unsafe"

	"github.com/goart-dev/art/backend/device/cpu/internal/ir"
	"github.com/goart-dev/art/backend/device/cpu/internal/memory"
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
	out := memory.Slice[T](dst, n)
	if n == 0 {
		return
	}
	out[0] = *(*T)(src)
	for done := 1; done < n; done *= 2 {
		copy(out[done:], out[:done]) // vectors, at any size of element
	}
}

// loadView copies elements [first, first+n) of a collapsed view, of the tensor at base, to dst.
func loadView(l vec.Level, dst, base unsafe.Pointer, v ir.View, first, n int) {
	size := v.Of.Size
	switch {
	case n == 0:
	case len(v.Dims) == 0:
		fill(dst, unsafe.Add(base, v.Off*size), n, size)
	default:
		loadFrom(l, dst, &v, base, find(&v, first), n)
	}
}

// position is the index of an element of a view, and its offset.
type position struct {
	index [ir.MaxAxes]int
	off   int
}

// find returns the position of the element with number i. Divisions of 64 bits are slow, and blocks are short.
func find(v *ir.View, i int) (p position) {
	p.off = v.Off
	for k := len(v.Dims) - 1; k > 0; k-- {
		rest := i / v.Dims[k]
		p.index[k] = i - rest*v.Dims[k]
		p.off += p.index[k] * v.Strides[k]
		i = rest
	}
	p.index[0] = i
	p.off += i * v.Strides[0]
	return p
}

// loadFrom copies n elements from a position on.
func loadFrom(l vec.Level, dst unsafe.Pointer, v *ir.View, base unsafe.Pointer, p position, n int) {
	size, k := v.Of.Size, len(v.Dims)-1
	index, off := &p.index, p.off
	for done := 0; done < n; {
		run := min(n-done, v.Dims[k]-index[k])
		to, at := unsafe.Add(dst, done*size), unsafe.Add(base, off*size)
		if planes, lines := linesFrom(v, index, n-done); lines > 1 && v.Strides[k] == 1 {
			p := vec.Plane{Lines: lines, Step: v.Strides[k-1] * size, Bytes: run * size}
			if planes > 1 {
				p.Next = v.Strides[k-2] * size
				off += (planes - 1) * v.Strides[k-2]
				index[k-2] += planes - 1
			}
			vec.Lines(l, to, at, planes, &p)
			run *= planes * lines
			off += (lines - 1) * v.Strides[k-1]
			index[k-1] += lines - 1
		} else {
			line(to, at, run, v.Strides[k], size)
			off -= index[k] * v.Strides[k]
			index[k] = 0
		}
		done += run
		for i := k - 1; i >= 0; i-- {
			index[i]++
			off += v.Strides[i]
			if index[i] < v.Dims[i] {
				break
			}
			off -= index[i] * v.Strides[i]
			index[i] = 0
		}
	}
}

// linesFrom is how many planes of how many lines of the last axis of v the next n elements from an index on begin with,
// until the axis before both ends.
func linesFrom(v *ir.View, index *[ir.MaxAxes]int, n int) (planes, lines int) {
	k := len(v.Dims) - 1
	if k == 0 || index[k] > 0 {
		return 0, 0
	}
	lines = v.Dims[k-1] - index[k-1]
	plane := lines * v.Dims[k]
	switch {
	case plane > n:
		return 1, n / v.Dims[k]
	case k == 1 || index[k-1] > 0 || 2*plane > n:
		return 1, lines
	}
	return min(n/plane, v.Dims[k-2]-index[k-2]), lines
}

// line copies n elements that are stride apart.
func line(dst, src unsafe.Pointer, n, stride, size int) {
	switch {
	case stride == 1:
		copy(memory.Bytes(dst, n*size), memory.Bytes(src, n*size))
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
	for i := range memory.Slice[T](dst, n) {
		*(*T)(unsafe.Add(dst, i*int(unsafe.Sizeof(*new(T))))) = *(*T)(unsafe.Add(src, i*step))
	}
}
