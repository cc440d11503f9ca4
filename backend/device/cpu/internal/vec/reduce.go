package vec

// lanes are the partial results of a row. A chunk is a multiple of their number.
type lanes = [64]float32

// Lanes are the partial results of a row that is reduced piece by piece. They begin with the identity: 0, -Inf or +Inf.
type Lanes = lanes

// SumPiece adds a piece of a row to the lanes, and returns the sum so far. The last one is that of [Sum]. A piece has
// up to 16,384 elements; all but the last a multiple of 64.
func SumPiece(l Level, w *Lanes, x []float32) float32 { return kernelsOf[l].sumLanes(w, x) }

// MaxPiece is the same for [Max].
func MaxPiece(l Level, w *Lanes, x []float32) float32 { return kernelsOf[l].maxLanes(w, x) }

// MinPiece is the same for [Min].
func MinPiece(l Level, w *Lanes, x []float32) float32 { return kernelsOf[l].minLanes(w, x) }

// fold calls a kernel for the chunks of a row. All but the short rows need lanes that one call hands to the next.
func fold(x []float32, identity float32, kernel func(lanes *lanes, x []float32) float32) float32 {
	if len(x) <= chunk {
		return kernel(nil, x)
	}
	w := filled(identity)
	for len(x) > chunk {
		kernel(w, x[:chunk])
		x = x[chunk:]
	}
	return kernel(w, x)
}

// Sum returns the sum of x, 0 if it is empty.
func Sum(l Level, x []float32) float32 { return fold(x, 0, kernelsOf[l].sumLanes) }

// Max returns the largest element, NaN if there is one, -Inf if x is empty. Lanes are brought together as in a sum,
// which says whether it is -0 or +0 where both are the largest.
func Max(l Level, x []float32) float32 { return fold(x, negativeInfinity, kernelsOf[l].maxLanes) }

// Min returns the least element, NaN if there is one, +Inf if x is empty.
func Min(l Level, x []float32) float32 { return fold(x, positiveInfinity, kernelsOf[l].minLanes) }

// SumRows sets each element of dst to the [Sum] of a row of x; rows have n elements, and follow one another.
func SumRows(l Level, dst, x []float32, n int) { rows(l, dst, x, n, kernelsOf[l].sumRows, Sum) }

// MaxRows is the same for [Max].
func MaxRows(l Level, dst, x []float32, n int) { rows(l, dst, x, n, kernelsOf[l].maxRows, Max) }

// MinRows is the same for [Min].
func MinRows(l Level, dst, x []float32, n int) { rows(l, dst, x, n, kernelsOf[l].minRows, Min) }

// rows reduces rows with a kernel of the level: between two calls for one row each, the processor would not read ahead.
func rows(
	l Level, dst, x []float32, n int, kernel func(dst, x []float32, n int), row func(l Level, x []float32) float32,
) {
	x = x[:len(dst)*n]
	if kernel != nil && n <= chunk && len(dst) > 0 {
		kernel(dst, x, n)
		return
	}
	for i := range dst {
		dst[i] = row(l, x[i*n:][:n])
	}
}
