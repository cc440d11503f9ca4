package gemm

import (
	"unsafe"

	"golang.org/x/sys/cpu"

	"github.com/goart-dev/art/backend/device/cpu/internal/cpuid"
)

//go:generate go run ./gen

var levelAVX512 = level{
	rows: 14, columns: panel, full: fullAVX512, narrow: narrowAVX512, thin: thinAVX512, half: halfAVX512,
	transB: transBAVX512, broad: broadAVX512, placed: placedAVX512, stream: streamAVX512, masks: true,
	wide: wideAVX512, wideColumns: []int{2: 128, 3: 128, 4: 64, 5: 64, 6: 64},
	oneStage: oneStageRows, oneStageHalf: oneStageRowsHalf, near: oneStageAhead,
	copy: copyAVX512, transpose: transposeAVX512, transposeWidth: 16, blocks: transposeBlocksAVX512,
	widen: widenWith(widenAVX512, widenAll), widenFloat16: widenWith(widenFloat16AVX512, widenAllFloat16),
	read:   readAVX512,
	scales: scalesAVX512, dequantize: dequantizeAVX512, multiply: multiplyAVX512, multiplyRows: 8, multiplyTwo: true,
	codedRows: codedRows,
	round:     roundAVX512, unpack: unpackAVX512, sum: sumAVX512, sumRows: 6,
}

var levelAVX2 = level{
	rows: 6, columns: 16, full: fullAVX2, half: halfAVX2, stream: streamAVX2,
	wide: wideAVX2, wideColumns: []int{1: panel, 2: panel},
	oneStage: oneStageRowsAVX2, near: oneStageAhead, reread: rereadAVX2,
	copy: copyLines, transpose: transposeAVX2, transposeWidth: 8,
	widen: widenWith(widenAVX2, widenAll), widenFloat16: widenWith(widenFloat16AVX2, widenAllFloat16), read: readAVX2,
	scales: scalesAVX2, dequantize: dequantizeAVX2, multiply: multiplyAVX2, multiplyRows: 2, codedRows: 2,
	round: roundAVX2, unpack: unpackAVX2, sum: sumAVX2, sumRows: 2, sumClasses: true,
}

//go:noescape
func fullAVX512(t *tile)

//go:noescape
func narrowAVX512(t *tile)

//go:noescape
func thinAVX512(t *tile)

//go:noescape
func halfAVX512(t *tile)

//go:noescape
func transBAVX512(t *tile)

//go:noescape
func broadAVX512(t *tile)

//go:noescape
func placedAVX512(t *tile)

//go:noescape
func wideAVX512(t *tile)

//go:noescape
func streamAVX512(t *tile)

//go:noescape
func scalesAVX512(t *scaling)

//go:noescape
func dequantizeAVX512(t *coded)

//go:noescape
func multiplyAVX512(t *coded)

//go:noescape
func scalesAVX2(t *scaling)

//go:noescape
func dequantizeAVX2(t *coded)

//go:noescape
func multiplyAVX2(t *coded)

//go:noescape
func fullAVX2(t *tile)

//go:noescape
func halfAVX2(t *tile)

//go:noescape
func wideAVX2(t *tile)

//go:noescape
func streamAVX2(t *tile)

//go:noescape
func transposeAVX512(p *packing)

//go:noescape
func transposeAVX2(p *packing)

//go:noescape
func readAVX512(p unsafe.Pointer, n int)

//go:noescape
func readAVX2(p unsafe.Pointer, n int)

//go:noescape
func roundAVX512(t *rounding)

//go:noescape
func unpackAVX512(t *unpacking)

//go:noescape
func sumAVX512(t *summing)

// levelNoVNNI is for processors with AVX-512 and without VPDPBUSD.
var levelNoVNNI = levelAVX512.withoutVNNI()

func (l level) withoutVNNI() level {
	l.sum, l.sumRows, l.sumClasses = sumAVX2, levelAVX2.sumRows, true
	return l
}

//go:noescape
func roundAVX2(t *rounding)

//go:noescape
func unpackAVX2(t *unpacking)

//go:noescape
func sumAVX2(t *summing)

func assembly(l cpuid.Level) *level {
	switch l {
	case cpuid.AVX512:
		if !cpu.X86.HasAVX512VNNI {
			return &levelNoVNNI
		}
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

//go:noescape
func widenFloat16AVX512(dst, src unsafe.Pointer, n int)

//go:noescape
func widenFloat16AVX2(dst, src unsafe.Pointer, n int)

// widenWith is the same as rest, with a kernel for 16 numbers and more.
func widenWith(
	kernel func(dst, src unsafe.Pointer, n int), rest func(dst []float32, src []uint16),
) func(dst []float32, src []uint16) {
	return func(dst []float32, src []uint16) {
		n := len(src) &^ 15
		if n > 0 {
			kernel(unsafe.Pointer(&dst[0]), unsafe.Pointer(&src[0]), n)
		}
		rest(dst[n:], src[n:])
	}
}
