package ggml

import (
	"encoding/binary"
	"math"

	"github.com/goart-dev/art/internal/float16"
)

// Convertible reports whether [Type.Convert] converts the type.
func (t Type) Convertible() bool {
	_, quantized := layouts[t]
	return quantized || t == F32 || t == F16 || t == BF16
}

// Convert sets y to the elements of whole blocks of a type that is convertible. Each step of the formula is rounded to
// float32, as in the reference, so the result is the same on every machine.
func (t Type) Convert(y []float32, data []byte) {
	switch t {
	case F32:
		for i := range y {
			y[i] = math.Float32frombits(binary.LittleEndian.Uint32(data[4*i:]))
		}
		return
	case F16:
		for i := range y {
			y[i] = float16.Float32(binary.LittleEndian.Uint16(data[2*i:]))
		}
		return
	case BF16: // the upper half of a float32
		for i := range y {
			y[i] = math.Float32frombits(uint32(binary.LittleEndian.Uint16(data[2*i:])) << 16)
		}
		return
	}
	l, size := layouts[t], sizes[t]
	var s Split
	for ; len(y) > 0; y, data = y[size.block:], data[size.bytes:] {
		t.Split(&s, data[:size.bytes:size.bytes])
		d, m := float16.Float32(s.D), float16.Float32(s.M)
		if t == MXFP4 {
			d = math.Float32frombits(uint32(s.D) << 16)
		}
		for g := range size.block / l.Group {
			scale, minimum := d*float32(s.S[g]), m*float32(s.N[g])
			codes, to := s.Codes[g*l.Group:][:l.Group], y[g*l.Group:][:l.Group]
			if l.Bits == 8 {
				for i, q := range codes {
					to[i] = scale * float32(int8(q)) //nolint:gosec // the bits of a signed number
				}
				continue
			}
			for i, q := range codes {
				to[i] = float32(scale*l.Table[q&31]) - minimum
			}
		}
	}
}
