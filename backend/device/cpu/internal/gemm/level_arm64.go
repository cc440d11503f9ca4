package gemm

import "github.com/goart-dev/art/backend/device/cpu/internal/cpuid"

// levelNEON moves panels in Go: its kernels are checked for their results, not for their speed.
var levelNEON = level{
	rows: 6, columns: 16, full: fullNEON,
	copy: copyLines, widen: widenAll, read: readAll,
}

//go:noescape
func fullNEON(t *tile)

func assembly(l cpuid.Level) *level {
	if l == cpuid.NEON {
		return &levelNEON
	}
	return nil
}
