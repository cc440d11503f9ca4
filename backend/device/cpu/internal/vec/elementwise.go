package vec

import "math"

// UnaryOp is an element-wise function of one operand.
type UnaryOp int

// The element-wise functions. The bounds are the largest errors found against float64 over all floats, in units
// of the last place; where there is none, the result is exact or rounded once.
const (
	OpNeg     UnaryOp = iota // -x
	OpAbs                    // |x|
	OpSqrt                   // square root, correctly rounded
	OpRsqrt                  // 1/sqrt(x), two roundings, 1.5
	OpExp                    // exp(x), 0.8
	OpExpm1                  // exp(x) - 1, 1.4
	OpLog                    // natural logarithm, 0.8
	OpLog1p                  // log(1+x), 1.4
	OpSigmoid                // 1/(1+exp(-x)), 2.2
	OpTanh                   // hyperbolic tangent, 2.2
	OpSin                    // sine, 1.5
	OpCos                    // cosine, 1.5
	OpSign                   // 1, -1, or x if it is 0 or NaN
	OpFloor                  // largest integer up to x
	OpCeil                   // least integer from x
	OpRound                  // nearest integer, even on ties
)

// chunk is the number of elements for which an assembly function is called: it runs for some microseconds, and Go
// cannot stop it meanwhile.
const chunk = 1 << 14

// UnaryFunc returns the function for blocks: with up to 16,384 elements, as it cannot be interrupted. x is as long as
// dst.
func UnaryFunc(l Level, op UnaryOp) func(dst, x []float32) {
	if op == OpSin || op == OpCos {
		return func(dst, x []float32) { sine(l, op, dst, x) }
	}
	return kernelsOf[l].unary[op]
}

// BinaryOp is an element-wise function of two operands.
type BinaryOp int

// The element-wise functions of two operands. The larger one of -0 and +0 is the second operand, and so is the smaller
// one.
const (
	OpAdd BinaryOp = iota // a + b
	OpSub                 // a - b
	OpMul                 // a * b
	OpDiv                 // a / b
	OpMax                 // the larger one, NaN if one is
	OpMin                 // the smaller one, NaN if one is
)

// CompareOp is an element-wise comparison. With NaN it is false, but for OpNotEqual.
type CompareOp int

// The comparisons.
const (
	OpEqual        CompareOp = iota // a == b
	OpLess                          // a < b
	OpLessEqual                     // a <= b
	OpNotEqual                      // a != b
	OpGreater                       // a > b
	OpGreaterEqual                  // a >= b
)

// BinaryFunc returns dst = a op b for blocks of up to 16,384 elements.
func BinaryFunc(l Level, op BinaryOp) func(dst, a, b []float32) { return kernelsOf[l].binary[op] }

// BinaryScalarFunc returns dst = a op b for blocks and a number b.
func BinaryScalarFunc(l Level, op BinaryOp) func(dst, a []float32, b float32) {
	if op == OpDiv && l == AVX512 { // narrower ones gain nothing
		return func(dst, a []float32, b float32) { divide(l, dst, a, b) }
	}
	return kernelsOf[l].binaryScalar[op]
}

// ScalarBinaryFunc returns dst = a op b for blocks and a number a, which is the last parameter.
func ScalarBinaryFunc(l Level, op BinaryOp) func(dst, b []float32, a float32) {
	return kernelsOf[l].scalarBinary[op]
}

// CompareFunc returns dst = a op b for blocks of up to 16,384 elements.
func CompareFunc(l Level, op CompareOp) func(dst []bool, a, b []float32) {
	return kernelsOf[l].compare[op]
}

// CompareScalarFunc returns dst = a op b for blocks and a number b.
func CompareScalarFunc(l Level, op CompareOp) func(dst []bool, a []float32, b float32) {
	return kernelsOf[l].compareScalar[op]
}

// divide writes a/b. A processor takes ten cycles for the quotients of a vector, and two for a product. So where
// nothing can over- or underflow, a quotient is made of products: with r = 1/b, rounded,
//
//	q = RN(a*r), e = RN(a - b*q), a/b = RN(q + e*r)
//
// has the bits of a division (RN rounds once, to the nearest). In units of the last place of a/b, q is off by up to
// 1.5, so that before the last rounding the result is off by up to 3*2^-24: it can be wrong only if a/b is that close
// to the middle between two floats. TestDivide_HardCases tries all numerators and denominators for which it is. The
// method is that of P. Markstein, "Computation of elementary functions on the IBM RISC System/6000 processor", IBM J.
// Res. Dev. 34 (1990), and of N. Brisebarre, J.-M. Muller and S. K. Raina, "Accelerating correctly rounded
// floating-point division when the divisor is known in advance", IEEE Trans. Computers 53 (2004).
//
// With b from 2^-60 to 2^60 and |a| from 2^-63 to 2^65, q is normal and e is a multiple of 2^-110.
func divide(l Level, dst, a []float32, b float32) {
	if b >= 0x1p-60 && b <= 0x1p60 && len(dst) > 0 && &dst[0] != &a[0] && quotients(l, dst, a, b) {
		return
	}
	kernelsOf[l].binaryScalar[OpDiv](dst, a, b)
}

// quotients writes a/b and reports whether that is right: all of a are 0 or of moderate size.
func quotients(l Level, dst, a []float32, b float32) bool {
	return math.Float32bits(kernelsOf[l].quotientLanes(nil, dst, a, b, 1/b))>>30 == 0
}

// WhereFunc returns Where for blocks of up to 16,384 elements. The bits of an element are copied, whatever they stand
// for.
func WhereFunc(l Level) func(dst []float32, cond []bool, a, b []float32) { return kernelsOf[l].where }

// Fill writes x into each element.
func Fill(l Level, dst []float32, x float32) {
	fill := kernelsOf[l].fill
	for i := 0; i < len(dst); i += chunk {
		fill(dst[i:min(i+chunk, len(dst))], x)
	}
}

// ToBfloat16 rounds to bfloat16, even on ties. NaN becomes the NaN 0x7fc0.
func ToBfloat16(l Level, dst []uint16, x []float32) { convert(dst, x, kernelsOf[l].toBfloat16) }

// FromBfloat16 widens bfloat16, exactly.
func FromBfloat16(l Level, dst []float32, x []uint16) { convert(dst, x, kernelsOf[l].fromBfloat16) }

func convert[D, X any](dst []D, x []X, f func(dst []D, x []X)) {
	x = x[:len(dst)]
	for len(dst) > chunk {
		f(dst[:chunk], x[:chunk])
		dst, x = dst[chunk:], x[chunk:]
	}
	f(dst, x)
}
