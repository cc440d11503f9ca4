package vec

import "math"

var negativeInfinities, positiveInfinities = filled(math.Inf(-1)), filled(math.Inf(1))

func filled(x float64) (w lanes) {
	for i := range w {
		w[i] = float32(x)
	}
	return w
}
