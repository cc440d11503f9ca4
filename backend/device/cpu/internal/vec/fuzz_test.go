package vec

import (
	"encoding/binary"
	"math"
	"slices"
	"testing"
)

// FuzzLevels compares the levels on operands of any bits.
func FuzzLevels(f *testing.F) {
	f.Fuzz(func(t *testing.T, op uint8, data []byte) {
		x := make([]float32, min(len(data)/4, 200))
		for i := range x {
			x[i] = math.Float32frombits(binary.LittleEndian.Uint32(data[4*i:]))
		}
		half := len(x) / 2
		run := func(l Level) []float32 {
			y, z := make([]float32, len(x)), make([]float32, half)
			UnaryFunc(l, UnaryOp(int(op)%len(kernelsPortable.unary)))(y, x)
			BinaryFunc(l, BinaryOp(int(op)%len(kernelsPortable.binary)))(z, x[:half], x[half:])
			y = append(append(y, z...), Sum(l, x), Max(l, x), Min(l, x))
			k := fusedTable[int(op)%len(fusedTable)]
			o := fusedOperands{scalars: make([]float32, k.Scalars)}
			copy(o.scalars, x)
			for i := range k.Streams {
				o.in = append(o.in, x[i*len(x)/k.Streams:][:len(x)/k.Streams])
			}
			out := make([][]float32, len(k.Out))
			for i := range out {
				out[i] = make([]float32, len(o.in[0]))
			}
			y = append(y, k.run(l, o, out))
			return append(y, slices.Concat(out...)...)
		}
		want := run(Portable)
		for _, l := range fast() {
			wantSame(t, l.String(), run(l), want)
		}
	})
}
