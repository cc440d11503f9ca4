package gemm

import "github.com/goart-dev/art/backend/device/cpu/internal/cpuid"

//go:generate go run ./gen

var levelAVX512 = level{
	rows: 14, columns: panel, full: fullAVX512, narrow: narrowAVX512, half: halfAVX512, masks: true,
	copy: copyLines, transpose: transposeLines, widen: widenAll,
}

var levelAVX2 = level{
	rows: 6, columns: 16, full: fullAVX2, half: halfAVX2,
	copy: copyLines, transpose: transposeLines, widen: widenAll,
}

func assembly(l cpuid.Level) *level {
	switch l {
	case cpuid.AVX512:
		return &levelAVX512
	case cpuid.AVX2:
		return &levelAVX2
	}
	return nil
}
