//go:build amd64 && goexperiment.simd

package graphx

import "simd/archsimd"

// rowStep is what the rows of a product are padded to a multiple of. Products in vectors treat all rows alike.
var rowStep = func() int {
	if archsimd.X86.AVX2() {
		return 1
	}
	return plainRows
}()
