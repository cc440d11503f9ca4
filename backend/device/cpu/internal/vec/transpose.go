package vec

// transposeBlock is the number of columns that are transposed at once: the rows that they become stay in the cache.
const transposeBlock = 64

// Block is a matrix in a larger one: rows and columns, and the strides of the rows of the destination and of the
// source.
type Block struct{ Rows, Columns, Dst, Src int }

// Transpose writes dst[j*b.Dst+i] = src[i*b.Src+j] for i of the rows and j of the columns. What is less than a strip
// takes narrower ones.
func Transpose(l Level, dst, src []float32, b Block) {
	strip := kernelsOf[l].stripRows
	if strip == 0 {
		transposeAny(dst, src, b)
		return
	}
	rows, columns := b.Rows/strip*strip, b.Columns/strip*strip
	for j := 0; j < columns; j += transposeBlock {
		n := min(transposeBlock, columns-j)
		for i := 0; i < rows; i += strip {
			kernelsOf[l].transposeStrip(dst[j*b.Dst+i:], src[i*b.Src+j:], b.Dst, b.Src, n)
		}
	}
	if columns < b.Columns && b.Rows > 0 {
		Transpose(narrower(l), dst[columns*b.Dst:], src[columns:], Block{b.Rows, b.Columns - columns, b.Dst, b.Src})
	}
	if rows < b.Rows && columns > 0 {
		Transpose(narrower(l), dst[rows:], src[rows*b.Src:], Block{b.Rows - rows, columns, b.Dst, b.Src})
	}
}

// transposeAny is Transpose for every type, in tiles of which each cache line is used up.
func transposeAny[T Element](dst, src []T, b Block) {
	const tile = 16
	for j := 0; j < b.Columns; j += tile {
		for i := 0; i < b.Rows; i += tile {
			for c := j; c < min(j+tile, b.Columns); c++ {
				row := dst[c*b.Dst:]
				for r := i; r < min(i+tile, b.Rows); r++ {
					row[r] = src[r*b.Src+c]
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
