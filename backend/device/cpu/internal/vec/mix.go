package vec

// MulAdd writes a*b + c for each element, rounded once.
func MulAdd(l Level, dst, a, b, c []float32) {
	n := len(dst)
	a, b, c = a[:n], b[:n], c[:n]
	for i := 0; i < n; i += chunk {
		e := min(i+chunk, n)
		mulAdd(l, dst[i:e], a[i:e], b[i:e], c[i:e])
	}
}

// MulAddScalar writes a*s + c for each element, rounded once.
func MulAddScalar(l Level, dst, a, c []float32, s float32) {
	n := len(dst)
	a, c = a[:n], c[:n]
	for i := 0; i < n; i += chunk {
		e := min(i+chunk, n)
		mulAddScalar(l, dst[i:e], a[i:e], c[i:e], s)
	}
}

// WhereFunc returns Where for blocks of up to 16,384 elements. The bits of an element are copied, whatever they stand for.
func WhereFunc(l Level) func(dst []float32, cond []bool, a, b []float32) {
	return func(dst []float32, cond []bool, a, b []float32) { where(l, dst, cond, a, b) }
}

// Where writes the element of a where cond holds, and else that of b.
func Where(l Level, dst []float32, cond []bool, a, b []float32) {
	n := len(dst)
	cond, a, b = cond[:n], a[:n], b[:n]
	for i := 0; i < n; i += chunk {
		e := min(i+chunk, n)
		where(l, dst[i:e], cond[i:e], a[i:e], b[i:e])
	}
}

// Fill writes x into each element.
func Fill(l Level, dst []float32, x float32) {
	for i := 0; i < len(dst); i += chunk {
		fill(l, dst[i:min(i+chunk, len(dst))], x)
	}
}
