// Package exp2 computes powers of two of many numbers, for sampling: all exponentials of a vocabulary for each token.
package exp2

import "math"

// Replace replaces each x of [-1000, 0] by 2^x, within 1e-13 of it, and those below by 0. It takes a sixth of the time
// of [math.Exp2], which divides, and less than half of that with vectors. With k = round(64 x) and the powers of two of
// j/64 in a table:
//
//	2^x = 2^(k/64) e^r,  r = (x - k/64) ln 2,  |r| < 0.0055
//	e^r = 1 + r + r²/2 + r³/6 + r⁴/24
//
// On one processor the bits depend on x alone.
func Replace(list []float64) { portable(list[vector(list):]) }

func portable(list []float64) {
	const shift = 0x1.8p52 // adding it rounds to an integer, which the low bits then hold
	for i, x := range list {
		if x < -1000 {
			list[i] = 0
			continue
		}
		t := x*64 + shift
		k := int64(math.Float64bits(t)) - int64(math.Float64bits(shift))
		r := (x - (t-shift)/64) * math.Ln2
		y := 1 + r*(1+r*(0.5+r*(1.0/6+r*(1.0/24))))
		list[i] = y * math.Float64frombits(roots[k&63]+uint64(k>>6)<<52)
	}
}

// roots holds the bits of 2^(j/64).
var roots = func() (bits [64]uint64) {
	for j := range bits {
		bits[j] = math.Float64bits(math.Exp2(float64(j) / 64))
	}
	return bits
}()
