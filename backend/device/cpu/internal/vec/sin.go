package vec

import (
	"math"
	"math/bits"
)

// waveLimit is up to where the kernels reduce an angle well.
const waveLimit = 1e5

// sine writes OpSin or OpCos, the sine of a quarter turn more: by a kernel for a block of small angles, and else one
// element after the other.
func sine(l Level, op UnaryOp, dst, x []float32) {
	if m := kernelsOf[l].maxAbsLanes(nil, x); m <= waveLimit {
		kernelsOf[l].unary[op](dst, x)
		return
	}
	for i, v := range x[:len(dst)] {
		if a := math.Abs(float64(v)); a <= waveLimit || a > math.MaxFloat32 || a != a {
			kernelsPortable.unary[op](dst[i:i+1], x[i:i+1])
			continue
		}
		r, quarter := reduceLarge(v)
		if op == OpCos {
			quarter++
		}
		wavePortable(dst[i:i+1], []float32{r}, []int32{quarter})
	}
}

// twoOverPi has the bits of 2/pi behind the binary point, after 64 zeros.
var twoOverPi = [6]uint64{
	0, 0xa2f9836e4e441529, 0xfc2757d1f534ddc0, 0xdb6295993c439041, 0xfe5163abdebbc561, 0xb7246e3a424dd2e0,
}

// reduceLarge returns r, at most pi/4 away from 0, and a number of quarter turns that make up x, |x| >= 1e5. Of x times
// 2/pi it computes only the bits that matter: two in front of the binary point and 62 behind it.
func reduceLarge(x float32) (r float32, quarter int32) {
	b := math.Float32bits(x)
	fraction, exponent := uint64(b&0x7fffff|0x800000), int(b>>23&0xff)-150
	at := 64 + exponent - 2
	quarters := fraction * piBits(at)
	low, _ := bits.Mul64(fraction, piBits(at+64))
	quarters += low
	whole := (quarters + 1<<61) >> 62
	angle := float32(float64(int64(quarters-whole<<62)) * (0x1p-62 * math.Pi / 2))
	if x < 0 {
		return -angle, -int32(whole)
	}
	return angle, int32(whole)
}

// piBits returns 64 bits of twoOverPi.
func piBits(at int) uint64 {
	i, shift := at/64, uint(at%64)
	return twoOverPi[i]<<shift | twoOverPi[i+1]>>(64-shift)
}
