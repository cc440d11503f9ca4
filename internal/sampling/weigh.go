package sampling

import "math"

// weigh sets each weight to 2^((x - best) scale), and returns their sum; it is 0 below 2^-1000. best is the largest x,
// or larger. Powers are within 1e-13 of the exact ones, and take a sixth of the time of [math.Exp2], which divides;
// with vectors much less. With z = (x - best) scale, k = round(64 z) and the powers of two of j/64 in a table:
//
//	2^z = 2^(k/64) e^r,  r = (z - k/64) ln 2,  |r| < 0.0055
//	e^r = 1 + r + r²/2 + r³/6 + r⁴/24
//
// A weight depends on its x alone, bit for bit, wherever it is in the list. The sum has four parts, of every fourth
// weight, which do not wait for each other.
func weigh(weights []float64, x []float32, best, scale float64) float64 {
	var sums [4]float64
	n := weighVector(weights, x, best, scale, &sums)
	return weighRest(weights[n:], x[n:], best, scale, sums)
}

// weighRest is weigh of what follows numbers with such sums.
func weighRest(weights []float64, x []float32, best, scale float64, sums [4]float64) float64 {
	// The conversion has a loop of its own: it keeps half of the register that it writes to, so that each power would wait
	// for the one before.
	for i := range weights {
		weights[i] = float64(x[i])
	}
	const shift = 0x1.8p52 // adding it rounds to an integer, which the low bits then hold
	for i, v := range weights {
		z := (v - best) * scale
		if z < -1000 {
			weights[i] = 0
			continue
		}
		t := z*64 + shift
		k := int64(math.Float64bits(t)) - int64(math.Float64bits(shift))
		r := (z - (t-shift)/64) * math.Ln2
		y := 1 + r*(1+r*(0.5+r*(1.0/6+r*(1.0/24))))
		weights[i] = y * math.Float64frombits(roots[k&63]+uint64(k>>6)<<52)
	}
	return addUp(weights, sums)
}

// addUp adds numbers to four sums, and returns their total.
func addUp(list []float64, s [4]float64) float64 {
	for ; len(list) >= 4; list = list[4:] {
		s[0], s[1], s[2], s[3] = s[0]+list[0], s[1]+list[1], s[2]+list[2], s[3]+list[3]
	}
	for _, w := range list {
		s[0] += w
	}
	return s[0] + s[1] + s[2] + s[3]
}

// roots holds the bits of 2^(j/64).
var roots = func() (bits [64]uint64) {
	for j := range bits {
		bits[j] = math.Float64bits(math.Exp2(float64(j) / 64))
	}
	return bits
}()

// largest returns the largest of at least one number, none of which is NaN.
func largest(x []float32) float32 {
	most, n := maxVector(x)
	if n == 0 {
		most = x[0]
	}
	for _, v := range x[n:] {
		if v > most {
			most = v
		}
	}
	return most
}
