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
