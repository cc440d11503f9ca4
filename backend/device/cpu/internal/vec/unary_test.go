package vec

import (
	"fmt"
	"testing"
)

func TestUnary_SameBits(t *testing.T) {
	r := newRandom(1)
	for op := range kernelsPortable.unary {
		for _, n := range sizes {
			off := r.IntN(16)
			x := random(r, n+off)[off:]
			want := make([]float32, n)
			UnaryFunc(Portable, UnaryOp(op))(want, x)
			for _, l := range fast() {
				what := fmt.Sprint("operation ", op, " ", l)
				dst, all := guarded(n, off)
				UnaryFunc(l, UnaryOp(op))(dst, x)
				wantSame(t, what, dst, want)
				wantGuards(t, what, all, n, off)
				own := append([]float32(nil), x...)
				UnaryFunc(l, UnaryOp(op))(own, own)
				wantSame(t, what+" in place", own, want)
			}
		}
	}
}
