package vec

// lanes are the partial results of a row. A chunk is a multiple of their number.
type lanes = [64]float32

// Sum returns the sum of x, 0 if it is empty.
func Sum(l Level, x []float32) float32 {
	var w lanes
	for len(x) > chunk {
		sumLanes(l, &w, x[:chunk])
		x = x[chunk:]
	}
	sumLanes(l, &w, x)
	return sumTree(l, &w)
}

// SumSquares returns the sum of x*x: each product is rounded, as in Sum of OpSquare.
func SumSquares(l Level, x []float32) float32 {
	var w lanes
	for len(x) > chunk {
		squaresLanes(l, &w, x[:chunk])
		x = x[chunk:]
	}
	squaresLanes(l, &w, x)
	return sumTree(l, &w)
}

// Dot returns the sum of a*b: each product is rounded, as in Sum of OpMul.
func Dot(l Level, a, b []float32) float32 {
	var w lanes
	b = b[:len(a)]
	for len(a) > chunk {
		dotLanes(l, &w, a[:chunk], b[:chunk])
		a, b = a[chunk:], b[chunk:]
	}
	dotLanes(l, &w, a, b)
	return sumTree(l, &w)
}

// Max returns the largest element, NaN if there is one, -Inf if x is empty. Lanes are brought together as in a sum, which
// says whether it is -0 or +0 where both are the largest.
func Max(l Level, x []float32) float32 {
	w := negativeInfinities
	for len(x) > chunk {
		maxLanes(l, &w, x[:chunk])
		x = x[chunk:]
	}
	maxLanes(l, &w, x)
	return maxTree(l, &w)
}

// Min returns the least element, NaN if there is one, +Inf if x is empty.
func Min(l Level, x []float32) float32 {
	w := positiveInfinities
	for len(x) > chunk {
		minLanes(l, &w, x[:chunk])
		x = x[chunk:]
	}
	minLanes(l, &w, x)
	return minTree(l, &w)
}

// maxAbs returns the largest absolute value, NaN if there is one.
func maxAbs(l Level, x []float32) float32 {
	var w lanes
	maxAbsLanes(l, &w, x)
	return maxTree(l, &w)
}

// argBlock is the length of the parts that ArgMax looks at.
const argBlock = 1024

// ArgMax returns the first index of the largest element, or of the first NaN, -1 if x is empty.
func ArgMax(l Level, x []float32) int {
	best, from := float32(0), -1
	for i := 0; i < len(x); i += argBlock {
		m := Max(l, x[i:min(i+argBlock, len(x))])
		if from < 0 || m > best || isNaN(m) {
			best, from = m, i
		}
		if isNaN(m) {
			break
		}
	}
	if from < 0 {
		return -1
	}
	for i, v := range x[from:] {
		if v == best || isNaN(v) {
			return from + i
		}
	}
	panic("unreachable")
}
