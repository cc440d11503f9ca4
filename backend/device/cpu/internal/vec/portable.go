package vec

import "math"

// These are the instructions of the generated portable kernels that Go has no operator for.

func larger(a, b float32) float32 {
	if a > b {
		return a
	}
	return b
}

func smaller(a, b float32) float32 {
	if a < b {
		return a
	}
	return b
}

func choose(c bool, a, b float32) float32 {
	if c {
		return a
	}
	return b
}

func chooseWord(c bool, a, b uint32) uint32 {
	if c {
		return a
	}
	return b
}

func isNaN(x float32) bool { return math.Float32bits(x)&0x7fffffff > 0x7f800000 }

// timesPowerOfTwo returns a * 2^n, rounded once, for integral n from -1022 to 1023. If n is NaN, so is a.
func timesPowerOfTwo(a, n float32) float32 {
	return float32(float64(a) * math.Float64frombits(uint64(1023+int(n))<<52))
}

var negativeInfinity, positiveInfinity = float32(math.Inf(-1)), float32(math.Inf(1))

// filled returns lanes that begin with an identity.
func filled(identity float32) *lanes {
	w := new(lanes)
	for i := range w {
		w[i] = identity
	}
	return w
}

// tree brings the lanes together by halves.
func tree(lanes *[64]float32, step func(a, b float32) float32) float32 {
	w := *lanes
	for half := len(w) / 2; half > 0; half /= 2 {
		for i := range half {
			w[i] = step(w[i], w[i+half])
		}
	}
	return w[0]
}

func sumTree(lanes *[64]float32) float32 {
	return tree(lanes, func(a, b float32) float32 { return a + b })
}

func orTree(lanes *[64]float32) float32 {
	return tree(lanes, func(a, b float32) float32 {
		return math.Float32frombits(math.Float32bits(a) | math.Float32bits(b))
	})
}

func maxTree(lanes *[64]float32) float32 {
	return tree(lanes, func(a, b float32) float32 { return choose(isNaN(a), a, larger(a, b)) })
}

func minTree(lanes *[64]float32) float32 {
	return tree(lanes, func(a, b float32) float32 { return choose(isNaN(a), a, smaller(a, b)) })
}
