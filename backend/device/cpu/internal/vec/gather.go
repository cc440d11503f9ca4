package vec

// GatherRows writes row index[i] of src as row i of dst. Rows have width elements.
func GatherRows[T Element](dst, src []T, width int, index []int32) {
	for i, row := range index {
		copy(dst[i*width:(i+1)*width], src[int(row)*width:])
	}
}

// ScatterAddRows adds row i of x to row index[i] of dst, for i = 0, 1, ... in this order, in the columns from to to-1. So
// workers that share the columns out add in the same order.
func ScatterAddRows(l Level, dst, x []float32, width, from, to int, index []int32) {
	for i, row := range index {
		d := dst[int(row)*width:][from:to]
		Binary(l, OpAdd, d, d, x[i*width:][from:to])
	}
}
