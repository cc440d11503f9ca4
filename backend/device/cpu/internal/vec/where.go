package vec

// WhereFunc returns Where for blocks of up to 16,384 elements. The bits of an element are copied, whatever they stand
// for.
func WhereFunc(l Level) func(dst []float32, cond []bool, a, b []float32) { return kernelsOf[l].where }

// Fill writes x into each element.
func Fill(l Level, dst []float32, x float32) {
	for i := 0; i < len(dst); i += chunk {
		kernelsOf[l].fill(dst[i:min(i+chunk, len(dst))], x)
	}
}
