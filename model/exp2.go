package model

import "math"

// exp2 is [math.Exp2], bit for bit, and faster where the result is a normal number: it builds the power of two in place
// of calling Ldexp. (The assembly of math.Exp mixes SSE and AVX, which is slow while AVX-512 has left the registers
// dirty.) The polynomial is that of FreeBSD's e_exp.c, which math uses too:
//
//	2^x = 2^k e^r,  k = round(x),  r = (x - k) ln 2 = hi - lo
//	e^r = 1 - ((lo - r c / (2 - c)) - hi),  c = r - r² P(r²)
func exp2(x float64) float64 {
	if !(x > -1000 && x < 1000) { // subnormal, overflow, NaN
		return math.Exp2(x)
	}
	half := math.Copysign(0.5, x)
	k := int64(x + half)
	t := x - float64(k)
	hi, lo := t*ln2Hi, -t*ln2Lo
	r := hi - lo
	t = r * r
	c := r - t*(p1+t*(p2+t*(p3+t*(p4+t*p5))))
	y := 1 - ((lo - (r*c)/(2-c)) - hi)
	return y * math.Float64frombits(uint64(k+1023)<<52)
}

// The constants of math.Exp2.
const (
	ln2Hi = 6.93147180369123816490e-01
	ln2Lo = 1.90821492927058770002e-10
	p1    = 1.66666666666666657415e-01
	p2    = -2.77777777770155933842e-03
	p3    = 6.61375632143793436117e-05
	p4    = -1.65339022054652515390e-06
	p5    = 4.13813679705723846039e-08
)
