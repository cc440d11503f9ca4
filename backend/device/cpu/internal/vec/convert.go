package vec

// ToBfloat16 rounds to bfloat16, even on ties. NaN becomes the NaN 0x7fc0.
func ToBfloat16(l Level, dst []uint16, x []float32) { convert(dst, x, kernelsOf[l].toBfloat16) }

// FromBfloat16 widens bfloat16, exactly.
func FromBfloat16(l Level, dst []float32, x []uint16) { convert(dst, x, kernelsOf[l].fromBfloat16) }

func convert[D, X any](dst []D, x []X, f func(dst []D, x []X)) {
	x = x[:len(dst)]
	for len(dst) > chunk {
		f(dst[:chunk], x[:chunk])
		dst, x = dst[chunk:], x[chunk:]
	}
	f(dst, x)
}
