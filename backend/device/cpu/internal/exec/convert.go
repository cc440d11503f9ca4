package exec

import (
	"unsafe"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/dtypes/bfloat16"

	"github.com/goart-dev/art/backend/device/cpu/internal/memory"
)

// conversion returns the kernel from one type to another. Floats are cut to integers, NaN is 0 and what is out of range
// goes to the nearest end; anything but 0 is true.
func conversion(out, in dtypes.DType) kernel {
	switch in {
	case dtypes.Bool:
		in = dtypes.Uint8 // true is stored as 1
	case dtypes.BFloat16:
		if k := conversion(out, dtypes.Float32); k != nil {
			return func(dst, a, _, _ unsafe.Pointer, n int) { // blocks of float32
				var block [128]float32
				for done := 0; done < n; done += len(block) {
					m := min(len(block), n-done)
					widenBF16(block[:m], memory.Slice[bfloat16.BFloat16](unsafe.Add(a, 2*done), m))
					k(unsafe.Add(dst, out.Size()*done), unsafe.Pointer(&block), nil, nil, m)
				}
			}
		}
	}
	if t, ok := types[in]; ok {
		return t.convert(out)
	}
	return nil
}

// convert returns the kernel from T to another type, or nil.
func convert[T number](out dtypes.DType) kernel {
	switch out {
	case dtypes.Float32:
		return unary(func(x T) float32 { return float32(x) })
	case dtypes.Float64:
		return unary(func(x T) float64 { return float64(x) })
	case dtypes.BFloat16:
		return unary(func(x T) bfloat16.BFloat16 { return bfloat16.FromFloat32(float32(x)) })
	case dtypes.Int8:
		return toWhole[T, int8]()
	case dtypes.Int16:
		return toWhole[T, int16]()
	case dtypes.Int32:
		return toWhole[T, int32]()
	case dtypes.Int64:
		return toWhole[T, int64]()
	case dtypes.Uint8:
		return toWhole[T, uint8]()
	case dtypes.Uint16:
		return toWhole[T, uint16]()
	case dtypes.Uint32:
		return toWhole[T, uint32]()
	case dtypes.Uint64:
		return toWhole[T, uint64]()
	case dtypes.Bool:
		return unary(func(x T) bool { return x != 0 })
	}
	return nil
}

// toWhole cuts floats. Whole numbers wrap around.
func toWhole[A number, B wholeNumber]() kernel {
	if one := A(1); one/2 == 0 {
		return unary(func(x A) B { return B(x) })
	}
	low, high := limits[B]()
	least, most := A(low), A(high)
	return unary(func(x A) B {
		switch {
		case x != x:
			return 0
		case x <= least:
			return low
		case x >= most:
			return high
		}
		return B(x)
	})
}

// limits are the least and the greatest number of a type.
func limits[T wholeNumber]() (low, high T) {
	if ^low > 0 {
		return 0, ^low
	}
	low = 1 << (8*unsafe.Sizeof(low) - 1)
	return low, ^low
}
