package exec

import (
	"maps"
	"math"
	"unsafe"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/dtypes/bfloat16"

	"github.com/goart-dev/art/backend/device/cpu/internal/memory"
	"github.com/goart-dev/art/backend/device/cpu/internal/vec"
)

// kernel computes n elements from up to three operands. All are contiguous; dst may be an operand.
type kernel func(dst, a, b, c unsafe.Pointer, n int)

// number is what arithmetic is defined on.
type number interface {
	float32 | float64 | wholeNumber
}

type wholeNumber interface {
	int8 | int16 | int32 | int64 | uint8 | uint16 | uint32 | uint64
}

// elementKernel returns the kernel of an element-wise operation, or nil. out is the type of the result, in that of the
// first operand.
func elementKernel(l vec.Level, op compute.OpType, out, in dtypes.DType) kernel {
	switch {
	case op == compute.OpTypeConvertDType:
		return conversion(out, in)
	case op == compute.OpTypeWhere:
		return selection(l, out)
	case in == dtypes.Bool:
		return logic[op]
	case in == dtypes.BFloat16:
		return widened(single(l, op), out)
	case in == dtypes.Float32:
		return single(l, op)
	}
	return types[in].elements[op]
}

// typed are the functions of a type of numbers.
type typed struct {
	elements   map[compute.OpType]kernel // of float32: see single
	reduce     func(op compute.OpType) *reducer
	convert    func(out dtypes.DType) kernel
	extreme    func(x unsafe.Pointer, n, stride int, isMin bool) int
	cumulate   func(dst, x unsafe.Pointer, c cumulation)
	count      func(dst unsafe.Pointer, n, times, limit int)
	setInteger func(dst unsafe.Pointer, x int)
}

var types = map[dtypes.DType]typed{
	dtypes.Float32: typedOf[float32](nil, floats[float32]),
	dtypes.Float64: typedOf[float64](functions64(), floats[float64]),
	dtypes.Int8:    typedOf[int8](integers[int8](), whole[int8]),
	dtypes.Int16:   typedOf[int16](integers[int16](), whole[int16]),
	dtypes.Int32:   typedOf[int32](integers[int32](), whole[int32]),
	dtypes.Int64:   typedOf[int64](integers[int64](), whole[int64]),
	dtypes.Uint8:   typedOf[uint8](integers[uint8](), whole[uint8]),
	dtypes.Uint16:  typedOf[uint16](integers[uint16](), whole[uint16]),
	dtypes.Uint32:  typedOf[uint32](integers[uint32](), whole[uint32]),
	dtypes.Uint64:  typedOf[uint64](integers[uint64](), whole[uint64]),
}

func typedOf[T number](elements map[compute.OpType]kernel, reduce func(op compute.OpType) *reducer) typed {
	return typed{
		elements, reduce, convert[T], extreme[T], cumulate[T], count[T],
		func(dst unsafe.Pointer, x int) { *(*T)(dst) = T(x) },
	}
}

// unary makes a kernel of a function of one element.
func unary[A, B any](f func(x A) B) kernel {
	return func(dst, a, _, _ unsafe.Pointer, n int) {
		out := memory.Slice[B](dst, n)
		for i, x := range memory.Slice[A](a, n) {
			out[i] = f(x)
		}
	}
}

// binary makes a kernel of a function of two elements.
func binary[A, B any](f func(x, y A) B) kernel {
	return func(dst, a, b, _ unsafe.Pointer, n int) {
		out, y := memory.Slice[B](dst, n), memory.Slice[A](b, n)
		for i, x := range memory.Slice[A](a, n) {
			out[i] = f(x, y[i])
		}
	}
}

// arithmetic is what all numbers have.
func arithmetic[T number]() map[compute.OpType]kernel {
	return map[compute.OpType]kernel{
		compute.OpTypeAdd:            binary(func(x, y T) T { return x + y }),
		compute.OpTypeSub:            binary(func(x, y T) T { return x - y }),
		compute.OpTypeMul:            binary(func(x, y T) T { return x * y }),
		compute.OpTypeDiv:            binary(func(x, y T) T { return x / y }),
		compute.OpTypeMax:            binary(func(x, y T) T { return max(x, y) }),
		compute.OpTypeMin:            binary(func(x, y T) T { return min(x, y) }),
		compute.OpTypeNeg:            unary(func(x T) T { return -x }),
		compute.OpTypeAbs:            unary(magnitude[T]),
		compute.OpTypeSign:           unary(sign[T]),
		compute.OpTypeEqual:          binary(func(x, y T) bool { return x == y }),
		compute.OpTypeNotEqual:       binary(func(x, y T) bool { return x != y }),
		compute.OpTypeLessThan:       binary(func(x, y T) bool { return x < y }),
		compute.OpTypeLessOrEqual:    binary(func(x, y T) bool { return x <= y }),
		compute.OpTypeGreaterThan:    binary(func(x, y T) bool { return x > y }),
		compute.OpTypeGreaterOrEqual: binary(func(x, y T) bool { return x >= y }),
	}
}

// magnitude clears the sign of a zero too.
func magnitude[T number](x T) T {
	if x <= 0 {
		return 0 - x
	}
	return x
}

// sign keeps zeros and NaN.
func sign[T number](x T) T {
	var minus T
	minus--
	switch {
	case x > 0:
		return 1
	case x < 0:
		return minus
	}
	return x
}

// integers is arithmetic, and what works on whole numbers only.
func integers[T wholeNumber]() map[compute.OpType]kernel {
	kernels := arithmetic[T]()
	maps.Copy(kernels, map[compute.OpType]kernel{
		compute.OpTypeRem:        binary(func(x, y T) T { return x % y }),
		compute.OpTypePow:        binary(power[T]),
		compute.OpTypeBitwiseAnd: binary(func(x, y T) T { return x & y }),
		compute.OpTypeBitwiseOr:  binary(func(x, y T) T { return x | y }),
		compute.OpTypeBitwiseXor: binary(func(x, y T) T { return x ^ y }),
		compute.OpTypeBitwiseNot: unary(func(x T) T { return ^x }),
	})
	return kernels
}

// power wraps around as multiplication does. A negative exponent leaves 0, but of 1 and -1.
func power[T wholeNumber](x, y T) T {
	out := T(1)
	if y < 0 {
		if x == 1 || x+1 == 0 {
			y = y & 1
		} else {
			return 0
		}
	}
	for ; y > 0; y >>= 1 {
		if y&1 == 1 {
			out *= x
		}
		x *= x
	}
	return out
}

// functions64 is arithmetic, and what is defined on float64 only.
func functions64() map[compute.OpType]kernel {
	kernels := arithmetic[float64]()
	maps.Copy(kernels, map[compute.OpType]kernel{
		compute.OpTypePow:      binary(math.Pow),
		compute.OpTypeRem:      binary(math.Mod),
		compute.OpTypeIsNaN:    unary(func(x float64) bool { return x != x }),
		compute.OpTypeIsFinite: unary(func(x float64) bool { return x-x == 0 }),
		compute.OpTypeExp:      unary(math.Exp),
		compute.OpTypeExpm1:    unary(math.Expm1),
		compute.OpTypeLog:      unary(math.Log),
		compute.OpTypeLog1p:    unary(math.Log1p),
		compute.OpTypeLogistic: unary(func(x float64) float64 { return 1 / (1 + math.Exp(-x)) }),
		compute.OpTypeTanh:     unary(math.Tanh),
		compute.OpTypeErf:      unary(math.Erf),
		compute.OpTypeSqrt:     unary(math.Sqrt),
		compute.OpTypeRsqrt:    unary(func(x float64) float64 { return 1 / math.Sqrt(x) }),
		compute.OpTypeSin:      unary(math.Sin),
		compute.OpTypeCos:      unary(math.Cos),
		compute.OpTypeFloor:    unary(math.Floor),
		compute.OpTypeCeil:     unary(math.Ceil),
		compute.OpTypeRound:    unary(math.RoundToEven),
	})
	return kernels
}

// logic works on booleans.
var logic = map[compute.OpType]kernel{
	compute.OpTypeLogicalAnd: binary(func(x, y bool) bool { return x && y }),
	compute.OpTypeLogicalOr:  binary(func(x, y bool) bool { return x || y }),
	compute.OpTypeLogicalXor: binary(func(x, y bool) bool { return x != y }),
	compute.OpTypeNotEqual:   binary(func(x, y bool) bool { return x != y }),
	compute.OpTypeEqual:      binary(func(x, y bool) bool { return x == y }),
	compute.OpTypeLogicalNot: unary(func(x bool) bool { return !x }),
}

// selection chooses from b where a is true, and from c elsewhere.
func selection(l vec.Level, t dtypes.DType) kernel {
	switch t.Size() {
	case 1:
		return choose[uint8]
	case 2:
		return choose[uint16]
	case 4:
		f := vec.WhereFunc(l)
		return func(dst, a, b, c unsafe.Pointer, n int) {
			f(memory.Slice[float32](dst, n), memory.Slice[bool](a, n), memory.Slice[float32](b, n), memory.Slice[float32](c, n))
		}
	case 8:
		return choose[uint64]
	}
	return nil
}

func choose[T any](dst, a, b, c unsafe.Pointer, n int) {
	out, yes, no := memory.Slice[T](dst, n), memory.Slice[T](b, n), memory.Slice[T](c, n)
	for i, ok := range memory.Slice[bool](a, n) {
		if ok {
			out[i] = yes[i]
		} else {
			out[i] = no[i]
		}
	}
}

// widened computes on bfloat16 in float32, and rounds the result.
func widened(k kernel, out dtypes.DType) kernel {
	if k == nil {
		return nil
	}
	return func(dst, a, b, c unsafe.Pointer, n int) {
		const most = 128
		var wide [3][most]float32
		for done := 0; done < n; done += most {
			m := min(most, n-done)
			var in [3]unsafe.Pointer
			for i, p := range [3]unsafe.Pointer{a, b, c} {
				if p != nil {
					widenBF16(wide[i][:m], memory.Slice[bfloat16.BFloat16](unsafe.Add(p, 2*done), m))
					in[i] = unsafe.Pointer(&wide[i])
				}
			}
			if out == dtypes.Bool {
				k(unsafe.Add(dst, done), in[0], in[1], in[2], m)
				continue
			}
			k(in[0], in[0], in[1], in[2], m)
			RoundBF16(memory.Slice[bfloat16.BFloat16](unsafe.Add(dst, 2*done), m), wide[0][:m])
		}
	}
}

// widenBF16 widens bfloat16, exactly.
func widenBF16(dst []float32, src []bfloat16.BFloat16) {
	for i, x := range src {
		dst[i] = x.Float32()
	}
}

// RoundBF16 rounds to the nearest bfloat16.
func RoundBF16(dst []bfloat16.BFloat16, src []float32) {
	for i, x := range src {
		dst[i] = bfloat16.FromFloat32(x)
	}
}
