package vec

// ReduceColumns writes c[j] = c[j] op x[0][j] op x[1][j] and so on, in this order, where row i of x is x[i*stride:] and as
// long as c.
func ReduceColumns(l Level, op BinaryOp, c, x []float32, rows, stride int) {
	f := binaryTable[op][l]
	for from := 0; from < len(c); from += columnBlock {
		part := c[from:min(from+columnBlock, len(c))]
		for i := range rows {
			f(part, part, x[i*stride+from:][:len(part)])
		}
	}
}

// columnBlock is the number of columns that are reduced at once: their results stay in the nearest cache.
const columnBlock = 2048
