package vec

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
