package vec

import "math"

// divide writes a/b. A processor takes ten cycles for the quotients of a vector, and two for a product. So where
// nothing can over- or underflow, a quotient is made of products: with r = 1/b, rounded,
//
//	q = RN(a*r), e = RN(a - b*q), a/b = RN(q + e*r)
//
// has the bits of a division (RN rounds once, to the nearest). In units of the last place of a/b, q is off by up to
// 1.5, so that before the last rounding the result is off by up to 3*2^-24: it can be wrong only if a/b is that close
// to the middle between two floats. TestDivide_HardCases tries all numerators and denominators for which it is. The
// method is that of P. Markstein, "Computation of elementary functions on the IBM RISC System/6000 processor", IBM J.
// Res. Dev. 34 (1990), and of N. Brisebarre, J.-M. Muller and S. K. Raina, "Accelerating correctly rounded
// floating-point division when the divisor is known in advance", IEEE Trans. Computers 53 (2004).
//
// With b from 2^-60 to 2^60 and |a| from 2^-63 to 2^65, q is normal and e is a multiple of 2^-110.
func divide(l Level, dst, a []float32, b float32) {
	if b >= 0x1p-60 && b <= 0x1p60 && len(dst) > 0 && &dst[0] != &a[0] && quotients(l, dst, a, b) {
		return
	}
	kernelsOf[l].binaryScalar[OpDiv](dst, a, b)
}

// quotients writes a/b and reports whether that is right: all of a are 0 or of moderate size.
func quotients(l Level, dst, a []float32, b float32) bool {
	return math.Float32bits(kernelsOf[l].quotientLanes(nil, dst, a, b, 1/b))>>30 == 0
}
