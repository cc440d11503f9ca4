package vec

// kernels are the functions of a level, those of operations by their numbers, for up to 16,384 elements.
type kernels struct {
	unary         []func(dst, x []float32) // OpSin and OpCos for |x| up to waveLimit
	binary        []func(dst, a, b []float32)
	binaryScalar  []func(dst, a []float32, b float32)
	scalarBinary  []func(dst, b []float32, a float32)
	compare       []func(dst []bool, a, b []float32)
	compareScalar []func(dst []bool, a []float32, b float32)
	fused         []func(call *FusedCall) // in the order of fusedTable

	where        func(dst []float32, cond []bool, a, b []float32)
	fill         func(dst []float32, s float32)
	toBfloat16   func(dst []uint16, x []float32)
	fromBfloat16 func(dst []float32, x []uint16)

	// Folds go on from lanes, unless those are nil.
	sumLanes, maxLanes, minLanes, maxAbsLanes func(lanes *lanes, x []float32) float32
	quotientLanes                             func(lanes *lanes, dst, a []float32, b, r float32) float32
	sumRows, maxRows, minRows                 func(dst, x []float32, n int) // nil: row by row

	stripRows      int // 0: there is no transposeStrip
	transposeStrip func(dst, src []float32, dstStride, srcStride, columns int)
}

// Kernels in assembly that take a multiple of so many elements are completed by portable ones.

func wholeUnary[D, X any](width int, body, rest func(dst []D, x []X)) func(dst []D, x []X) {
	return func(dst []D, x []X) {
		n := len(dst) &^ (width - 1)
		body(dst[:n], x[:n])
		if n < len(dst) {
			rest(dst[n:], x[n:])
		}
	}
}

func wholeBinary[D any](width int, body, rest func(dst []D, a, b []float32)) func(dst []D, a, b []float32) {
	return func(dst []D, a, b []float32) {
		n := len(dst) &^ (width - 1)
		body(dst[:n], a[:n], b[:n])
		if n < len(dst) {
			rest(dst[n:], a[n:], b[n:])
		}
	}
}

func wholeScalar[D any](width int, body, rest func(dst []D, a []float32, b float32)) func([]D, []float32, float32) {
	return func(dst []D, a []float32, b float32) {
		n := len(dst) &^ (width - 1)
		body(dst[:n], a[:n], b)
		if n < len(dst) {
			rest(dst[n:], a[n:], b)
		}
	}
}
