package gemm

import (
	"unsafe"

	"github.com/goart-dev/art/backend/device/cpu/internal/cpuid"
)

//go:generate go run ./gen

var levelAVX512 = level{
	rows: 14, columns: panel, full: fullAVX512, narrow: narrowAVX512, thin: thinAVX512, half: halfAVX512,
	transB: transBAVX512, broad: broadAVX512, placed: placedAVX512, wide: wideAVX512, stream: streamAVX512, masks: true,
	oneStage: oneStageRows, oneStageHalf: oneStageRowsHalf, near: oneStageAhead,
	copy: copyAVX512, transpose: transposeAVX512, blocks: transposeBlocksAVX512,
	widen: widenWith(widenAVX512), read: readAVX512,
}

var wideAVX512 = []wide{
	2: {128, wideAVX512_2x128}, 3: {128, wideAVX512_3x128},
	4: {64, wideAVX512_4x64}, 5: {64, wideAVX512_5x64}, 6: {64, wideAVX512_6x64},
}

var levelAVX2 = level{
	rows: 6, columns: 16, full: fullAVX2, half: halfAVX2, stream: streamAVX2,
	wide:     []wide{1: {panel, wideAVX2_1x32}, 2: {panel, wideAVX2_2x32}},
	oneStage: oneStageRowsAVX2, near: oneStageAhead, reread: rereadAVX2,
	copy: copyLines, transpose: transposeAVX2, widen: widenWith(widenAVX2), read: readAVX2,
}

//go:noescape
func readAVX512(p unsafe.Pointer, n int)

//go:noescape
func readAVX2(p unsafe.Pointer, n int)

func assembly(l cpuid.Level) *level {
	switch l {
	case cpuid.AVX512:
		return &levelAVX512
	case cpuid.AVX2:
		return &levelAVX2
	}
	return nil
}

//go:noescape
func copyAVX512(p *packing)

//go:noescape
func transposeBlocksAVX512(p *packing)

//go:noescape
func widenAVX512(dst, src unsafe.Pointer, n int)

//go:noescape
func widenAVX2(dst, src unsafe.Pointer, n int)

// widenWith is widenAll with a kernel for 16 numbers and more.
func widenWith(kernel func(dst, src unsafe.Pointer, n int)) func(dst []float32, src []uint16) {
	return func(dst []float32, src []uint16) {
		n := len(src) &^ 15
		if n > 0 {
			kernel(unsafe.Pointer(&dst[0]), unsafe.Pointer(&src[0]), n)
		}
		widenAll(dst[n:], src[n:])
	}
}
