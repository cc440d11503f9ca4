package exec

import (
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
	switch op {
	case compute.OpTypeConvertDType:
		return conversion(out, in)
	case compute.OpTypeWhere:
		return selection(l, out)
	}
	switch in {
	case dtypes.Bool:
		return logic(op)
	case dtypes.BFloat16:
		return widened(single(l, op), out)
	case dtypes.Float32:
		return single(l, op)
	case dtypes.Float64:
		return either(functions64(op), arithmetic[float64](op))
	case dtypes.Int8:
		return integers[int8](op)
	case dtypes.Int16:
		return integers[int16](op)
	case dtypes.Int32:
		return integers[int32](op)
	case dtypes.Int64:
		return integers[int64](op)
	case dtypes.Uint8:
		return integers[uint8](op)
	case dtypes.Uint16:
		return integers[uint16](op)
	case dtypes.Uint32:
		return integers[uint32](op)
	case dtypes.Uint64:
		return integers[uint64](op)
	}
	return nil
}

func either(a, b kernel) kernel {
	if a != nil {
		return a
	}
	return b
}

// unary makes a kernel of a function of one element, binary of two, compare of a comparison.
func unary[T any](f func(x T) T) kernel {
	return func(dst, a, _, _ unsafe.Pointer, n int) {
		out := memory.Slice[T](dst, n)
		for i, x := range memory.Slice[T](a, n) {
			out[i] = f(x)
		}
	}
}

func binary[T any](f func(x, y T) T) kernel {
	return func(dst, a, b, _ unsafe.Pointer, n int) {
		out, y := memory.Slice[T](dst, n), memory.Slice[T](b, n)
		for i, x := range memory.Slice[T](a, n) {
			out[i] = f(x, y[i])
		}
	}
}

func compare[T any](f func(x, y T) bool) kernel {
	return func(dst, a, b, _ unsafe.Pointer, n int) {
		out, y := memory.Slice[bool](dst, n), memory.Slice[T](b, n)
		for i, x := range memory.Slice[T](a, n) {
			out[i] = f(x, y[i])
		}
	}
}

func test[T any](f func(x T) bool) kernel {
	return func(dst, a, _, _ unsafe.Pointer, n int) {
		out := memory.Slice[bool](dst, n)
		for i, x := range memory.Slice[T](a, n) {
			out[i] = f(x)
		}
	}
}

// arithmetic is what all numbers have.
func arithmetic[T number](op compute.OpType) kernel {
	switch op {
	case compute.OpTypeAdd:
		return binary(func(x, y T) T { return x + y })
	case compute.OpTypeSub:
		return binary(func(x, y T) T { return x - y })
	case compute.OpTypeMul:
		return binary(func(x, y T) T { return x * y })
	case compute.OpTypeDiv:
		return binary(func(x, y T) T { return x / y })
	case compute.OpTypeMax:
		return binary(func(x, y T) T { return max(x, y) })
	case compute.OpTypeMin:
		return binary(func(x, y T) T { return min(x, y) })
	case compute.OpTypeNeg:
		return unary(func(x T) T { return -x })
	case compute.OpTypeAbs:
		return unary(magnitude[T])
	case compute.OpTypeSign:
		return unary(sign[T])
	case compute.OpTypeEqual:
		return compare(func(x, y T) bool { return x == y })
	case compute.OpTypeNotEqual:
		return compare(func(x, y T) bool { return x != y })
	case compute.OpTypeLessThan:
		return compare(func(x, y T) bool { return x < y })
	case compute.OpTypeLessOrEqual:
		return compare(func(x, y T) bool { return x <= y })
	case compute.OpTypeGreaterThan:
		return compare(func(x, y T) bool { return x > y })
	case compute.OpTypeGreaterOrEqual:
		return compare(func(x, y T) bool { return x >= y })
	}
	return nil
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
func integers[T wholeNumber](op compute.OpType) kernel {
	switch op {
	case compute.OpTypeRem:
		return binary(func(x, y T) T { return x % y })
	case compute.OpTypePow:
		return binary(power[T])
	case compute.OpTypeBitwiseAnd:
		return binary(func(x, y T) T { return x & y })
	case compute.OpTypeBitwiseOr:
		return binary(func(x, y T) T { return x | y })
	case compute.OpTypeBitwiseXor:
		return binary(func(x, y T) T { return x ^ y })
	case compute.OpTypeBitwiseNot:
		return unary(func(x T) T { return ^x })
	}
	return arithmetic[T](op)
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

// functions64 has what is defined on float64.
func functions64(op compute.OpType) kernel {
	if f := real1(op); f != nil {
		return unary(f)
	}
	switch op {
	case compute.OpTypePow:
		return binary(math.Pow)
	case compute.OpTypeRem:
		return binary(math.Mod)
	case compute.OpTypeIsNaN:
		return test(func(x float64) bool { return x != x })
	case compute.OpTypeIsFinite:
		return test(func(x float64) bool { return x-x == 0 })
	}
	return nil
}

// real1 returns a function of one real number, or nil.
func real1(op compute.OpType) func(float64) float64 {
	switch op {
	case compute.OpTypeExp:
		return math.Exp
	case compute.OpTypeExpm1:
		return math.Expm1
	case compute.OpTypeLog:
		return math.Log
	case compute.OpTypeLog1p:
		return math.Log1p
	case compute.OpTypeLogistic:
		return func(x float64) float64 { return 1 / (1 + math.Exp(-x)) }
	case compute.OpTypeTanh:
		return math.Tanh
	case compute.OpTypeErf:
		return math.Erf
	case compute.OpTypeSqrt:
		return math.Sqrt
	case compute.OpTypeRsqrt:
		return func(x float64) float64 { return 1 / math.Sqrt(x) }
	case compute.OpTypeSin:
		return math.Sin
	case compute.OpTypeCos:
		return math.Cos
	case compute.OpTypeFloor:
		return math.Floor
	case compute.OpTypeCeil:
		return math.Ceil
	case compute.OpTypeRound:
		return math.RoundToEven
	}
	return nil
}

// logic works on booleans.
func logic(op compute.OpType) kernel {
	switch op {
	case compute.OpTypeLogicalAnd:
		return binary(func(x, y bool) bool { return x && y })
	case compute.OpTypeLogicalOr:
		return binary(func(x, y bool) bool { return x || y })
	case compute.OpTypeLogicalXor, compute.OpTypeNotEqual:
		return binary(func(x, y bool) bool { return x != y })
	case compute.OpTypeEqual:
		return binary(func(x, y bool) bool { return x == y })
	case compute.OpTypeLogicalNot:
		return unary(func(x bool) bool { return !x })
	}
	return nil
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
