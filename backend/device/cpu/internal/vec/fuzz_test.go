package vec

import (
	"encoding/binary"
	"math"
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
			Unary(l, UnaryOp(int(op)%len(unaryTable)), y, x)
			Binary(l, BinaryOp(int(op)%len(binaryTable)), z, x[:half], x[half:])
			y = append(append(y, z...), Sum(l, x), Max(l, x), Min(l, x), Dot(l, x, x))
			MulAdd(l, z, z, x[:half], x[half:])
			return append(y, z...)
		}
		want := run(Portable)
		for _, l := range fast() {
			wantSame(t, l.String(), run(l), want)
		}
	})
}
