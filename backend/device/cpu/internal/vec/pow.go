package vec

import "math"

// Pow writes a^b for each element, with the special cases of math.Pow: 0.51 ulp. It computes in float64, at every level.
func Pow(dst, a, b []float32) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i := range dst {
		dst[i] = pow(a[i], b[i])
	}
}

// PowScalar writes a^b for each element of a.
func PowScalar(dst, a []float32, b float32) {
	a = a[:len(dst)]
	for i := range dst {
		dst[i] = pow(a[i], b)
	}
}

func pow(x, y float32) float32 {
	a, b := math.Abs(float64(x)), float64(y)
	switch {
	case y == 2:
		return x * x
	case y == 0 || x == 1 || !(a > 0 && a <= math.MaxFloat32) || !(math.Abs(b) <= math.MaxFloat32):
		return float32(math.Pow(float64(x), b)) // one of its special cases, which are exact
	case x < 0 && b != math.Floor(b):
		return float32(math.NaN())
	}
	p := float32(exp2(float64(b * log2(a))))
	if x < 0 && math.Mod(b, 2) != 0 {
		return -p
	}
	return p
}

// log2 returns the binary logarithm of a normal x > 0. With m from sqrt(1/2) to sqrt(2) and s = (m-1)/(m+1),
//
//	log(m) = 2*(s + s^3/3 + s^5/5 + ...)
//
// The conversions keep a compiler from fusing what is rounded twice, so that the bits are the same everywhere.
func log2(x float64) float64 {
	m, e := math.Frexp(x)
	if m < math.Sqrt2/2 {
		m, e = 2*m, e-1
	}
	s := (m - 1) / (m + 1)
	z := float64(s * s)
	sum := 0.0
	for k := 23; k > 0; k -= 2 {
		sum = float64(sum*z) + 1/float64(k)
	}
	return float64(e) + float64(2*math.Log2E*float64(s*sum))
}

// exp2 returns 2^t, by Taylor's series of exp where t is off an integer.
func exp2(t float64) float64 {
	t = math.Max(-1000, math.Min(1000, t))
	n := math.RoundToEven(t)
	r := float64((t - n) * math.Ln2)
	sum := 1.0
	for k := 14; k > 0; k-- {
		sum = 1 + float64(r/float64(k)*sum)
	}
	return math.Ldexp(sum, int(n))
}
