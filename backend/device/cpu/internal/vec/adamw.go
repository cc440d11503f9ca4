package vec

import "math"

// AdamW are the settings of a step.
type AdamW struct {
	Rate, Beta1, Beta2, Epsilon, Decay float64

	Step int // from 1
}

// Update makes a step in place:
//
//	m = m*beta1 + g*(1-beta1)
//	v = v*beta2 + (g*g)*(1-beta2)
//	w = w*(1 - rate*decay) - rate/(1-beta1^step) * (m / (sqrt(v)*(1/sqrt(1-beta2^step)) + eps))
//
// The factors are computed in float64 and rounded to float32.
func (a AdamW) Update(l Level, w, m, v, g []float32) {
	step := float32(a.Rate / (1 - power(a.Beta1, a.Step)))
	root := float32(1 / math.Sqrt(1-power(a.Beta2, a.Step)))
	keep := float32(1 - float64(a.Rate*a.Decay))
	n := len(w)
	m, v, g = m[:n], v[:n], g[:n]
	for i := 0; i < n; i += chunk {
		e := min(i+chunk, n)
		adamW(l, w[i:e], m[i:e], v[i:e], g[i:e], keep, float32(a.Beta1), float32(1-a.Beta1), float32(a.Beta2),
			float32(1-a.Beta2), root, float32(a.Epsilon), step)
	}
}

// power returns x^n by repeated squaring, which has the same bits on every processor.
func power(x float64, n int) float64 {
	y := 1.0
	for ; n > 0; n >>= 1 {
		if n&1 == 1 {
			y *= x
		}
		x *= x
	}
	return y
}
