package vec

// transposeBlock is the number of columns that are transposed at once: the rows that they become stay in the cache.
const transposeBlock = 64

// Transpose writes dst[j*dstStride+i] = src[i*srcStride+j] for i of rows and j of columns. What is less than a strip takes narrower ones.
func Transpose(l Level, dst, src []float32, rows, columns, dstStride, srcStride int) {
	strip := stripRows(l)
	if strip == 0 {
		transposeAny(dst, src, rows, columns, dstStride, srcStride)
		return
	}
	wholeRows, wholeColumns := rows/strip*strip, columns/strip*strip
	for j := 0; j < wholeColumns; j += transposeBlock {
		n := min(transposeBlock, wholeColumns-j)
		for i := 0; i < wholeRows; i += strip {
			transposeStrip(l, dst[j*dstStride+i:], src[i*srcStride+j:], dstStride, srcStride, n)
		}
	}
	if wholeColumns < columns && rows > 0 {
		Transpose(narrower(l), dst[wholeColumns*dstStride:], src[wholeColumns:], rows, columns-wholeColumns, dstStride, srcStride)
	}
	if wholeRows < rows && wholeColumns > 0 {
		Transpose(narrower(l), dst[wholeRows:], src[wholeRows*srcStride:], rows-wholeRows, wholeColumns, dstStride, srcStride)
	}
}

// transposeAny is Transpose for every type, in tiles of which each cache line is used up.
func transposeAny[T Element](dst, src []T, rows, columns, dstStride, srcStride int) {
	const tile = 16
	for j := 0; j < columns; j += tile {
		for i := 0; i < rows; i += tile {
			for c := j; c < min(j+tile, columns); c++ {
				row := dst[c*dstStride:]
				for r := i; r < min(i+tile, rows); r++ {
					row[r] = src[r*srcStride+c]
				}
			}
		}
	}
}

// narrower is the next level with smaller strips.
func narrower(l Level) Level {
	if l == AVX512 {
		return AVX2
	}
	return Portable
}
