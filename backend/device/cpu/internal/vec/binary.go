package vec

// BinaryOp is an element-wise function of two operands.
type BinaryOp int

// The element-wise functions of two operands. The larger one of -0 and +0 is the second operand, and so is the smaller one.
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
func BinaryFunc(l Level, op BinaryOp) func(dst, a, b []float32) { return binaryTable[op][l] }

// BinaryScalarFunc returns dst = a op b for blocks and a number b.
func BinaryScalarFunc(l Level, op BinaryOp) func(dst, a []float32, b float32) {
	return binaryScalarTable[op][l]
}

// ScalarBinaryFunc returns dst = a op b for blocks and a number a, which is the last parameter.
func ScalarBinaryFunc(l Level, op BinaryOp) func(dst, b []float32, a float32) {
	return scalarBinaryTable[op][l]
}

// Binary writes a op b for each element.
func Binary(l Level, op BinaryOp, dst, a, b []float32) {
	f, a, b := binaryTable[op][l], a[:len(dst)], b[:len(dst)]
	for len(dst) > chunk {
		f(dst[:chunk], a[:chunk], b[:chunk])
		dst, a, b = dst[chunk:], a[chunk:], b[chunk:]
	}
	f(dst, a, b)
}

// BinaryScalar writes a op b for each element of a.
func BinaryScalar(l Level, op BinaryOp, dst, a []float32, b float32) {
	withScalar(binaryScalarTable[op][l], dst, a, b)
}

// ScalarBinary writes a op b for each element of b.
func ScalarBinary(l Level, op BinaryOp, dst, b []float32, a float32) {
	withScalar(scalarBinaryTable[op][l], dst, b, a)
}

func withScalar(f func(dst, x []float32, s float32), dst, x []float32, s float32) {
	x = x[:len(dst)]
	for len(dst) > chunk {
		f(dst[:chunk], x[:chunk], s)
		dst, x = dst[chunk:], x[chunk:]
	}
	f(dst, x, s)
}

// CompareFunc returns dst = a op b for blocks of up to 16,384 elements.
func CompareFunc(l Level, op CompareOp) func(dst []bool, a, b []float32) { return compareTable[op][l] }

// CompareScalarFunc returns dst = a op b for blocks and a number b.
func CompareScalarFunc(l Level, op CompareOp) func(dst []bool, a []float32, b float32) {
	return compareScalarTable[op][l]
}

// Compare writes a op b for each element.
func Compare(l Level, op CompareOp, dst []bool, a, b []float32) {
	f, a, b := compareTable[op][l], a[:len(dst)], b[:len(dst)]
	for len(dst) > chunk {
		f(dst[:chunk], a[:chunk], b[:chunk])
		dst, a, b = dst[chunk:], a[chunk:], b[chunk:]
	}
	f(dst, a, b)
}

// CompareScalar writes a op b for each element of a.
func CompareScalar(l Level, op CompareOp, dst []bool, a []float32, b float32) {
	f, a := compareScalarTable[op][l], a[:len(dst)]
	for len(dst) > chunk {
		f(dst[:chunk], a[:chunk], b)
		dst, a = dst[chunk:], a[chunk:]
	}
	f(dst, a, b)
}
