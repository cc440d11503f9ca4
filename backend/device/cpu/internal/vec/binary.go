package vec

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
