package vec

//go:noescape
func transposeStripAVX512(dst, src []float32, dstStride, srcStride, columns int)

//go:noescape
func transposeStripAVX2(dst, src []float32, dstStride, srcStride, columns int)

// transposeStrip transposes stripRows(l) rows; columns is a multiple of it.
func transposeStrip(l Level, dst, src []float32, dstStride, srcStride, columns int) {
	if l == AVX512 {
		transposeStripAVX512(dst, src, dstStride, srcStride, columns)
		return
	}
	transposeStripAVX2(dst, src, dstStride, srcStride, columns)
}

// stripRows is the number of rows of a strip, 0 where there is no assembly.
func stripRows(l Level) int {
	switch l {
	case AVX512:
		return 16
	case AVX2:
		return 8
	}
	return 0
}
