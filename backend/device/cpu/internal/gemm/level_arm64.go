package gemm

import "github.com/goart-dev/art/backend/device/cpu/internal/cpuid"

// levelNEON moves panels in Go: its kernels are checked for their results, not for their speed.
var levelNEON = level{
	rows: 6, columns: 16, full: fullNEON,
	copy: copyLines, widen: widenAll, widenFloat16: widenAllFloat16, read: readAll,
	scales: scalesNEON, dequantize: dequantizeNEON, multiply: multiplyNEON, multiplyRows: 2, codedRows: 2,
	unpack: unpackNEON, sum: sumNEON, sumRows: 2, sumClasses: true,
}

//go:noescape
func fullNEON(t *tile)

//go:noescape
func scalesNEON(t *scaling)

//go:noescape
func dequantizeNEON(t *coded)

//go:noescape
func multiplyNEON(t *coded)

//go:noescape
func unpackNEON(t *unpacking)

//go:noescape
func sumNEON(t *summing)

func assembly(l cpuid.Level) *level {
	if l == cpuid.NEON {
		return &levelNEON
	}
	return nil
}
