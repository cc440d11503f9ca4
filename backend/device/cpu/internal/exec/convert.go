package exec

import (
	"math"
	"unsafe"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/dtypes/bfloat16"

	"github.com/goart-dev/art/backend/device/cpu/internal/memory"
)

// conversion returns the kernel from one type to another. Floats are cut to integers, NaN is 0 and what is out of range
// goes to the nearest end; anything but 0 is true.
func conversion(out, in dtypes.DType) kernel {
	switch in {
	case dtypes.Float32:
		return fromFloat[float32](out)
	case dtypes.Float64:
		return fromFloat[float64](out)
	case dtypes.BFloat16:
		if k := conversion(out, dtypes.Float32); k != nil {
			return through(k, 2, out.Size(), func(dst, src unsafe.Pointer, n int) {
				widenBF16(memory.Slice[float32](dst, n), memory.Slice[bfloat16.BFloat16](src, n))
			})
		}
	case dtypes.Int8:
		return fromInt[int8](out)
	case dtypes.Int16:
		return fromInt[int16](out)
	case dtypes.Int32:
		return fromInt[int32](out)
	case dtypes.Int64:
		return fromInt[int64](out)
	case dtypes.Uint8, dtypes.Bool: // true is stored as 1
		return fromInt[uint8](out)
	case dtypes.Uint16:
		return fromInt[uint16](out)
	case dtypes.Uint32:
		return fromInt[uint32](out)
	case dtypes.Uint64:
		return fromInt[uint64](out)
	}
	return nil
}

// through widens blocks to float32 before it converts them.
func through(k kernel, inSize, outSize int, widen func(dst, src unsafe.Pointer, n int)) kernel {
	return func(dst, a, _, _ unsafe.Pointer, n int) {
		const most = 128
		var block [most]float32
		p := unsafe.Pointer(&block)
		for done := 0; done < n; done += most {
			m := min(most, n-done)
			widen(p, unsafe.Add(a, inSize*done), m)
			k(unsafe.Add(dst, outSize*done), p, nil, nil, m)
		}
	}
}

func each[A, B any](f func(A) B) kernel {
	return func(dst, a, _, _ unsafe.Pointer, n int) {
		out := memory.Slice[B](dst, n)
		for i, x := range memory.Slice[A](a, n) {
			out[i] = f(x)
		}
	}
}

func fromFloat[T float32 | float64](out dtypes.DType) kernel {
	switch out {
	case dtypes.Float32:
		return each(func(x T) float32 { return float32(x) })
	case dtypes.Float64:
		return each(func(x T) float64 { return float64(x) })
	case dtypes.BFloat16:
		return each(func(x T) bfloat16.BFloat16 { return bfloat16.FromFloat32(float32(x)) })
	case dtypes.Int8:
		return each(func(x T) int8 { return cut[int8](float64(x), math.MinInt8, math.MaxInt8) })
	case dtypes.Int16:
		return each(func(x T) int16 { return cut[int16](float64(x), math.MinInt16, math.MaxInt16) })
	case dtypes.Int32:
		return each(func(x T) int32 { return cut[int32](float64(x), math.MinInt32, math.MaxInt32) })
	case dtypes.Int64:
		return each(func(x T) int64 { return cut[int64](float64(x), math.MinInt64, math.MaxInt64) })
	case dtypes.Uint8:
		return each(func(x T) uint8 { return cut[uint8](float64(x), 0, math.MaxUint8) })
	case dtypes.Uint16:
		return each(func(x T) uint16 { return cut[uint16](float64(x), 0, math.MaxUint16) })
	case dtypes.Uint32:
		return each(func(x T) uint32 { return cut[uint32](float64(x), 0, math.MaxUint32) })
	case dtypes.Uint64:
		return each(func(x T) uint64 { return cut[uint64](float64(x), 0, math.MaxUint64) })
	case dtypes.Bool:
		return each(func(x T) bool { return x != 0 })
	}
	return nil
}

// cut drops the fraction.
func cut[T wholeNumber](x float64, low, high T) T {
	switch {
	case x != x:
		return 0
	case x <= float64(low):
		return low
	case x >= float64(high):
		return high
	}
	return T(x)
}

func fromInt[T wholeNumber](out dtypes.DType) kernel {
	switch out {
	case dtypes.Float32:
		return each(func(x T) float32 { return float32(x) })
	case dtypes.Float64:
		return each(func(x T) float64 { return float64(x) })
	case dtypes.BFloat16:
		return each(func(x T) bfloat16.BFloat16 { return bfloat16.FromFloat32(float32(x)) })
	case dtypes.Int8:
		return each(func(x T) int8 { return int8(x) })
	case dtypes.Int16:
		return each(func(x T) int16 { return int16(x) })
	case dtypes.Int32:
		return each(func(x T) int32 { return int32(x) })
	case dtypes.Int64:
		return each(func(x T) int64 { return int64(x) })
	case dtypes.Uint8:
		return each(func(x T) uint8 { return uint8(x) })
	case dtypes.Uint16:
		return each(func(x T) uint16 { return uint16(x) })
	case dtypes.Uint32:
		return each(func(x T) uint32 { return uint32(x) })
	case dtypes.Uint64:
		return each(func(x T) uint64 { return uint64(x) })
	case dtypes.Bool:
		return each(func(x T) bool { return x != 0 })
	}
	return nil
}
