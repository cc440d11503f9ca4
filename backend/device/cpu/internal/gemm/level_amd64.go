package gemm

import (
	"unsafe"

	"github.com/goart-dev/art/backend/device/cpu/internal/cpuid"
)

//go:generate go run ./gen

var levelAVX512 = level{
	rows: 14, columns: panel, full: fullAVX512, narrow: narrowAVX512, thin: thinAVX512, half: halfAVX512,
	turn: turnAVX512, broad: broadAVX512, placed: placedAVX512, wide: wideAVX512, stream: streamAVX512, masks: true,
	oneStage: byProcessor(6, 14, 2), oneStageHalf: byProcessor(1, 8, 1), near: byProcessor(256, 4096, 4096),
	copy: copyAVX512, transpose: transposeAVX512, blocks: transposeBlocksAVX512, widen: widenWideAVX512, read: readAVX512,
}

// byProcessor is the first number if the processor is one of AMD's, the second if it is a Skylake server, and the third if it is another.
// A Zen 4 fetches what lies together by itself, and with few rows kernels are quick enough for it to see far ahead. Processors of Intel want
// to be told: a Cascade Lake all at once, 4 KB ahead; a Sapphire Rapids, whose memory takes longer, in two stages from three rows on.
func byProcessor(amd, skylake, others int) int {
	switch {
	case cpuid.AMD():
		return amd
	case cpuid.SkylakeServer():
		return skylake
	}
	return others
}

var wideAVX512 = []wide{
	2: {128, wideAVX512_2x128}, 3: {128, wideAVX512_3x128},
	4: {64, wideAVX512_4x64}, 5: {64, wideAVX512_5x64}, 6: {64, wideAVX512_6x64},
}

var levelAVX2 = level{
	rows: 6, columns: 16, full: fullAVX2, half: halfAVX2, stream: streamAVX2,
	wide: []wide{1: {panel, wideAVX2_1x32}, 2: {panel, wideAVX2_2x32}}, oneStage: 2, near: byProcessor(256, 4096, 4096),
	copy: copyLines, transpose: transposeAVX2, widen: widenAll, read: readAVX2,
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

// widenWideAVX512 is widenAll.
func widenWideAVX512(dst []float32, src []uint16) {
	n := len(src) &^ 15
	if n > 0 {
		widenAVX512(unsafe.Pointer(&dst[0]), unsafe.Pointer(&src[0]), n)
	}
	widenAll(dst[n:], src[n:])
}
