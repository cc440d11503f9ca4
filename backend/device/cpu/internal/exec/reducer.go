package exec

import (
	"unsafe"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"

	"github.com/goart-dev/art/backend/device/cpu/internal/ir"
	"github.com/goart-dev/art/backend/device/cpu/internal/memory"
	"github.com/goart-dev/art/backend/device/cpu/internal/vec"
)

// reducer reduces elements of one type.
type reducer struct {
	rows    func(dst, x unsafe.Pointer, rows, n int) // dst[i] = x[i*n] op x[i*n+1] op ...; the identity when n is 0
	columns func(acc, x unsafe.Pointer, n int)       // acc[i] = acc[i] op x[i]
	start   func(acc unsafe.Pointer, n int)          // acc[i] = identity
	pieces  *pieces                                  // how a row is reduced in pieces; nil: it is not
}

// lanes is the number of partial sums of a row. Lane l sums the elements l, l+lanes, l+2*lanes, ... in order. Then
// halves are added: l and l+32, l and l+16, and so on. So zeros at the end of a row do not change its sum.
const lanes = 64

// sumRow adds up a row of at most ir.SumChunk elements.
func sumRow[T float32 | float64](x []T) T {
	var acc [lanes]T
	for len(x) >= lanes {
		for l := range acc {
			acc[l] += x[l]
		}
		x = x[lanes:]
	}
	for l, v := range x {
		acc[l] += v
	}
	for half := lanes / 2; half > 0; half /= 2 {
		for l := range half {
			acc[l] += acc[l+half]
		}
	}
	return acc[0]
}

// sumLong adds up a row of any length.
func sumLong[T float32 | float64](x []T) T {
	if len(x) <= ir.SumChunk {
		return sumRow(x)
	}
	var parts []T
	for len(x) > 0 {
		n := min(ir.SumChunk, len(x))
		parts = append(parts, sumRow(x[:n]))
		x = x[n:]
	}
	return sumLong(parts)
}

// reduceKernel returns how an operation reduces a type, or nil.
func reduceKernel(l vec.Level, op compute.OpType, t dtypes.DType) *reducer {
	switch t {
	case dtypes.Float32:
		return singleReducer(l, op)
	case dtypes.Bool:
		switch op {
		case compute.OpTypeReduceLogicalAnd:
			return fold(true, func(a, x bool) bool { return a && x })
		case compute.OpTypeReduceLogicalOr:
			return fold(false, func(a, x bool) bool { return a || x })
		}
		return nil
	}
	if t, ok := types[t]; ok {
		return t.reduce(op)
	}
	return nil
}

func floats[T float32 | float64](op compute.OpType) *reducer {
	var zero T
	r := numbers(op, -1/zero, 1/zero)
	if op == compute.OpTypeReduceSum {
		r.rows = eachRow(sumLong[T])
	}
	return r
}

func whole[T wholeNumber](op compute.OpType) *reducer {
	low, high := limits[T]()
	return numbers(op, low, high)
}

// numbers reduces numbers from low to high.
func numbers[T number](op compute.OpType, low, high T) *reducer {
	switch op {
	case compute.OpTypeReduceSum:
		return fold(0, func(a, x T) T { return a + x })
	case compute.OpTypeReduceMax:
		return fold(low, func(a, x T) T { return max(a, x) })
	case compute.OpTypeReduceMin:
		return fold(high, func(a, x T) T { return min(a, x) })
	case compute.OpTypeReduceProduct:
		return fold(1, func(a, x T) T { return a * x })
	}
	return nil
}

// fold makes a reducer of a function, which is applied in the order of the elements.
func fold[T any](identity T, f func(a, x T) T) *reducer {
	return &reducer{
		rows: eachRow(func(x []T) T {
			a := identity
			for _, v := range x {
				a = f(a, v)
			}
			return a
		}),
		columns: func(acc, x unsafe.Pointer, n int) {
			a := memory.Slice[T](acc, n)
			for i, v := range memory.Slice[T](x, n) {
				a[i] = f(a[i], v)
			}
		},
		start: func(acc unsafe.Pointer, n int) {
			a := memory.Slice[T](acc, n)
			for i := range a {
				a[i] = identity
			}
		},
	}
}

// eachRow reduces one row after another.
func eachRow[T any](row func(x []T) T) func(dst, x unsafe.Pointer, rows, n int) {
	return func(dst, x unsafe.Pointer, rows, n int) {
		all := memory.Slice[T](x, rows*n)
		for i, out := 0, memory.Slice[T](dst, rows); i < rows; i++ {
			out[i] = row(all[i*n:][:n])
		}
	}
}

// extreme is the index of the least or greatest of n elements, stride apart.
func extreme[T number](p unsafe.Pointer, n, stride int, isMin bool) int {
	best, at := *(*T)(p), 0
	for i := range n {
		x := *(*T)(unsafe.Add(p, i*stride*int(unsafe.Sizeof(best))))
		if x != x {
			return i
		}
		if isMin && x < best || !isMin && x > best {
			best, at = x, i
		}
	}
	return at
}

// cumulation is a running sum of n elements, with the strides of the result and of the operand.
type cumulation struct {
	n, to, from int
	options     compute.CumSumOptions
}

func cumulate[T number](dst, x unsafe.Pointer, c cumulation) {
	size := int(unsafe.Sizeof(*new(T)))
	var sum T
	for i := range c.n {
		if c.options.Reverse {
			i = c.n - 1 - i
		}
		v := *(*T)(unsafe.Add(x, i*c.from*size))
		out := (*T)(unsafe.Add(dst, i*c.to*size))
		if c.options.Exclusive {
			*out = sum
			sum += v
			continue
		}
		sum += v
		*out = sum
	}
}

// count writes n elements: each number of [0, limit) so many times, over and over.
func count[T number](dst unsafe.Pointer, n, times, limit int) {
	out := memory.Slice[T](dst, n)
	for i := range out {
		out[i] = T(i / times % limit)
	}
}

// scatterKernel returns the function that adds n elements to others, or keeps the greater or smaller one.
func scatterKernel(l vec.Level, op compute.OpType, t dtypes.DType) func(acc, x unsafe.Pointer, n int) {
	of := map[compute.OpType]compute.OpType{
		compute.OpTypeScatterSum: compute.OpTypeReduceSum,
		compute.OpTypeScatterMax: compute.OpTypeReduceMax,
		compute.OpTypeScatterMin: compute.OpTypeReduceMin,
	}[op]
	if r := reduceKernel(l, of, t); r != nil {
		return r.columns
	}
	return nil
}
