package ggml

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestSplit_Convert: an element is t·(d·s) − m·n of the parts of its block, in one rounding. That Convert equals
// Python's gguf is tested in package gguf.
func TestSplit_Convert(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for kind := range Type(256) {
		l, ok := kind.Layout()
		if !ok {
			continue
		}
		var s Split
		block, got := make([]byte, kind.Bytes(kind.Block())), make([]float32, kind.Block())
		for range 200 {
			for i := range block {
				block[i] = byte(rng.Uint32()) & 0x3f // no exponent of NaN
			}
			kind.Split(&s, block)
			kind.Convert(got, block)
			d, m := half(s.D), half(s.M)
			if kind == MXFP4 {
				d = float64(math.Float32frombits(uint32(s.D) << 16))
			}
			for i, y := range got {
				number := float64(l.Table[s.Codes[i]&31])
				if l.Bits == 8 {
					number = float64(int8(s.Codes[i]))
				}
				g := i / l.Group
				if want := float32(number*(d*float64(s.S[g])) - m*float64(s.N[g])); want != y {
					t.Fatalf("%v: element %d is %v, want %v", kind, i, y, want)
				}
			}
		}
	}
}

// half is the number of a float16 that is no infinity or NaN.
func half(h uint16) float64 {
	exponent, mantissa := int(h>>10&31), float64(h&1023)/1024
	sign := 1 - 2*float64(h>>15)
	if exponent == 0 {
		return sign * math.Ldexp(mantissa, -14)
	}
	return sign * math.Ldexp(1+mantissa, exponent-15)
}
