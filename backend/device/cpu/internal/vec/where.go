package vec

// WhereFunc returns Where for blocks of up to 16,384 elements. The bits of an element are copied, whatever they stand
// for.
func WhereFunc(l Level) func(dst []float32, cond []bool, a, b []float32) {
	return func(dst []float32, cond []bool, a, b []float32) { where(l, dst, cond, a, b) }
}

// Fill writes x into each element.
func Fill(l Level, dst []float32, x float32) {
	for i := 0; i < len(dst); i += chunk {
		fill(l, dst[i:min(i+chunk, len(dst))], x)
	}
}
