package vec

import "math"

// fma returns a*b + c, rounded once. The product is exact in float64. The sum is not always, and to round it a second time
// may go wrong where it lies in the middle of two floats; so then it is rounded to odd, which keeps what was lost.
func fma(a, b, c float32) float32 {
	p := float64(a) * float64(b)
	s := p + float64(c)
	const half, rest = 1 << 28, 1<<29 - 1
	if math.Float64bits(s)&rest != half && math.Abs(s) >= 0x1p-126 {
		return float32(s)
	}
	return float32(roundToOdd(p, float64(c), s))
}

// roundToOdd returns a + b, the sum of which is s when rounded to nearest: if that is not exact, the neighbour of the exact
// sum that has an odd fraction.
func roundToOdd(a, b, s float64) float64 {
	t := s - a
	lost := (a - (s - t)) + (b - t)
	bits := math.Float64bits(s)
	if lost == 0 || bits&1 == 1 || math.IsInf(s, 0) || math.IsNaN(s) {
		return s
	}
	if (lost > 0) == (s > 0) {
		return math.Float64frombits(bits + 1)
	}
	return math.Float64frombits(bits - 1)
}
