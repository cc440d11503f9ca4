package exec

import (
	"math"
	"unsafe"

	"github.com/gomlx/compute"

	"github.com/goart-dev/art/backend/device/cpu/internal/ir"
	"github.com/goart-dev/art/backend/device/cpu/internal/memory"
	"github.com/goart-dev/art/backend/device/cpu/internal/vec"
)

// single returns the kernel of an operation on float32, or nil.
func single(l vec.Level, op compute.OpType) kernel {
	if k, ok := ir.UnaryOps[op]; ok {
		f := vec.UnaryFunc(l, k)
		return func(dst, a, _, _ unsafe.Pointer, n int) {
			f(memory.Slice[float32](dst, n), memory.Slice[float32](a, n))
		}
	}
	if k, ok := ir.BinaryOps[op]; ok {
		f := vec.BinaryFunc(l, k)
		return func(dst, a, b, _ unsafe.Pointer, n int) {
			f(memory.Slice[float32](dst, n), memory.Slice[float32](a, n), memory.Slice[float32](b, n))
		}
	}
	if k, ok := ir.CompareOps[op]; ok {
		f := vec.CompareFunc(l, k)
		return func(dst, a, b, _ unsafe.Pointer, n int) {
			f(memory.Slice[bool](dst, n), memory.Slice[float32](a, n), memory.Slice[float32](b, n))
		}
	}
	switch op {
	case compute.OpTypeErf:
		return unary(func(x float32) float32 { return float32(math.Erf(float64(x))) })
	case compute.OpTypePow:
		return binary(func(x, y float32) float32 { return float32(math.Pow(float64(x), float64(y))) })
	case compute.OpTypeRem:
		return binary(func(x, y float32) float32 { return float32(math.Mod(float64(x), float64(y))) })
	case compute.OpTypeIsNaN:
		return unary(func(x float32) bool { return x != x })
	case compute.OpTypeIsFinite:
		return unary(func(x float32) bool { return x-x == 0 })
	}
	return nil
}

// scalarKernel computes n elements from as many and one number.
type scalarKernel func(dst, x unsafe.Pointer, y float32, n int)

// withScalar returns the kernel of a binary operation on float32 whose left or right operand is one number, or nil.
func withScalar(l vec.Level, op compute.OpType, left bool) scalarKernel {
	if k, ok := ir.BinaryOps[op]; ok {
		f := vec.BinaryScalarFunc(l, k)
		if left {
			f = vec.ScalarBinaryFunc(l, k)
		}
		return func(dst, x unsafe.Pointer, y float32, n int) {
			f(memory.Slice[float32](dst, n), memory.Slice[float32](x, n), y)
		}
	}
	if k, ok := ir.CompareOps[op]; ok {
		if left {
			k = mirrored[k]
		}
		f := vec.CompareScalarFunc(l, k)
		return func(dst, x unsafe.Pointer, y float32, n int) {
			f(memory.Slice[bool](dst, n), memory.Slice[float32](x, n), y)
		}
	}
	return nil
}

// mirrored are the comparisons with their operands swapped.
var mirrored = map[vec.CompareOp]vec.CompareOp{
	vec.OpEqual: vec.OpEqual, vec.OpNotEqual: vec.OpNotEqual, vec.OpLess: vec.OpGreater,
	vec.OpLessEqual: vec.OpGreaterEqual, vec.OpGreater: vec.OpLess, vec.OpGreaterEqual: vec.OpLessEqual,
}

// singleReducer reduces float32.
func singleReducer(l vec.Level, op compute.OpType) *reducer {
	var row func(l vec.Level, x []float32) float32
	var rows func(l vec.Level, dst, x []float32, n int)
	var piece func(l vec.Level, w *vec.Lanes, x []float32) float32
	var columns vec.BinaryOp
	var identity float32
	switch op {
	case compute.OpTypeReduceSum:
		row, rows, piece, columns, identity = sumSingle, sumRows, vec.SumPiece, vec.OpAdd, 0
	case compute.OpTypeReduceMax:
		row, rows, piece, columns, identity = vec.Max, vec.MaxRows, vec.MaxPiece, vec.OpMax, float32(math.Inf(-1))
	case compute.OpTypeReduceMin:
		row, rows, piece, columns, identity = vec.Min, vec.MinRows, vec.MinPiece, vec.OpMin, float32(math.Inf(1))
	default:
		return floats[float32](op)
	}
	f := vec.BinaryFunc(l, columns)
	return &reducer{
		rows: func(dst, x unsafe.Pointer, count, n int) {
			rows(l, memory.Slice[float32](dst, count), memory.Slice[float32](x, count*n), n)
		},
		columns: func(acc, x unsafe.Pointer, n int) {
			f(memory.Slice[float32](acc, n), memory.Slice[float32](acc, n), memory.Slice[float32](x, n))
		},
		start: func(acc unsafe.Pointer, n int) { vec.Fill(l, memory.Slice[float32](acc, n), identity) },
		pieces: &pieces{
			add: func(w *vec.Lanes, x []float32) float32 { return piece(l, w, x) }, identity: identity,
			whole: func(x []float32) float32 { return row(l, x) }, chunked: op == compute.OpTypeReduceSum,
		},
	}
}

// sumSingle adds up a row: the sums of its chunks, if it is longer than one.
func sumSingle(l vec.Level, x []float32) float32 {
	if len(x) <= ir.SumChunk {
		return vec.Sum(l, x)
	}
	var parts []float32
	for len(x) > 0 {
		n := min(ir.SumChunk, len(x))
		parts = append(parts, vec.Sum(l, x[:n]))
		x = x[n:]
	}
	return sumSingle(l, parts)
}

// sumRows is sumSingle for rows of n elements.
func sumRows(l vec.Level, dst, x []float32, n int) {
	if n <= ir.SumChunk {
		vec.SumRows(l, dst, x, n)
		return
	}
	for i := range dst {
		dst[i] = sumSingle(l, x[i*n:][:n])
	}
}
