// Package float16 converts IEEE 754 binary16 numbers to float32.
package float16

import "math"

// Float32 returns the number with these bits
//
//	sign 1 | exponent 5, bias 15 | mantissa 10
//
// as a binary32 (exponent 8, bias 127; mantissa 23), which represents each exactly. NaNs keep their payload.
func Float32(h uint16) float32 {
	sign := uint32(h&0x8000) << 16
	exponent := uint32(h>>10) & 0x1f
	mantissa := uint32(h & 0x3ff)
	switch {
	case exponent == 0x1f: // infinity and NaN
		return math.Float32frombits(sign | 0xff<<23 | mantissa<<13)
	case exponent != 0:
		return math.Float32frombits(sign | (exponent+127-15)<<23 | mantissa<<13)
	default: // zero and subnormals
		return math.Float32frombits(sign | math.Float32bits(float32(mantissa)*0x1p-24))
	}
}

// FromFloat32 returns the bits of the nearest binary16, ties to even. What is too large becomes infinite. A NaN stays
// one.
func FromFloat32(v float32) uint16 {
	b := math.Float32bits(v)
	sign := uint16(b >> 16 & 0x8000)
	b &= 0x7fffffff
	switch {
	case b > 0xff<<23:
		return sign | 0x7e00
	case b >= 0x477ff000: // 65520 is halfway between the largest number and the next, which there is not
		return sign | 0x7c00
	case b >= (127-14)<<23: // normal: the 13 bits that are dropped may carry into the exponent
		return sign | uint16((b-(127-15)<<23+0xfff+b>>13&1)>>13)
	default: // the sum has the unit of subnormals, 2^-24, as its last bit
		return sign | uint16(math.Float32bits(math.Float32frombits(b)+0.5)-math.Float32bits(0.5))
	}
}
