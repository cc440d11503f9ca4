package vec

import (
	"fmt"
	"slices"
	"testing"

	"github.com/goart-dev/art/backend/device/cpu/internal/cpuid"
)

func TestBinary_SameBits(t *testing.T) {
	r := newRandom(4)
	for op := range kernelsPortable.binary {
		for _, n := range sizes {
			off := r.IntN(16)
			a, b, s := random(r, n+off)[off:], random(r, n+off)[off:], random(r, 1)[0]
			for form, run := range []func(l Level, dst, a, b []float32){
				func(l Level, dst, a, b []float32) { BinaryFunc(l, BinaryOp(op))(dst, a, b) },
				func(l Level, dst, a, _ []float32) { BinaryScalarFunc(l, BinaryOp(op))(dst, a, s) },
				func(l Level, dst, _, b []float32) { ScalarBinaryFunc(l, BinaryOp(op))(dst, b, s) },
			} {
				want := make([]float32, n)
				run(Portable, want, a, b)
				for _, l := range fast() {
					what := fmt.Sprintf("operation %d form %d %v", op, form, l)
					dst, all := guarded(n, off)
					run(l, dst, a, b)
					wantSame(t, what, dst, want)
					wantGuards(t, what, all, n, off)
					own := slices.Clone(a)
					run(l, own, own, b)
					wantSame(t, what+" onto a", own, want)
					own = slices.Clone(b)
					run(l, own, a, own)
					wantSame(t, what+" onto b", own, want)
				}
			}
		}
	}
}

func TestBinary_Values(t *testing.T) {
	nan := edges[10]
	for _, l := range cpuid.Supported() {
		for _, c := range []struct {
			op         BinaryOp
			a, b, want float32
		}{
			{OpAdd, 1, 2, 3}, {OpSub, 1, 2, -1}, {OpMul, 3, 2, 6}, {OpDiv, 3, 2, 1.5}, {OpMax, 3, 2, 3}, {OpMax, 2, 3, 3},
			{OpMin, 3, 2, 2}, {OpMin, 2, 3, 2}, {OpMax, nan, 1, nan}, {OpMax, 1, nan, nan}, {OpMin, nan, 1, nan}, {OpMin, 1, nan, nan},
			{OpAdd, 0x1p-149, 0x1p-149, 0x1p-148}, {OpMul, 0x1p-140, 0x1p-9, 0x1p-149},
		} {
			var got [1]float32
			BinaryFunc(l, c.op)(got[:], []float32{c.a}, []float32{c.b})
			if !same(got[0], c.want) {
				t.Errorf("%v: operation %d of %v and %v is %v, want %v", l, c.op, c.a, c.b, got[0], c.want)
			}
		}
	}
}

func TestCompare(t *testing.T) {
	r := newRandom(5)
	holds := []func(a, b float32) bool{
		func(a, b float32) bool { return a == b }, func(a, b float32) bool { return a < b },
		func(a, b float32) bool { return a <= b }, func(a, b float32) bool { return a != b },
		func(a, b float32) bool { return a > b }, func(a, b float32) bool { return a >= b },
	}
	for op, hold := range holds {
		for _, n := range append(sizes, chunk+5) {
			a, b, s := random(r, n), random(r, n), random(r, 1)[0]
			for i := range b {
				if i%3 == 0 {
					b[i] = a[i]
				}
			}
			for _, l := range cpuid.Supported() {
				dst := make([]bool, n+1)
				CompareFunc(l, CompareOp(op))(dst[:n], a, b)
				for i := range n {
					if dst[i] != hold(a[i], b[i]) {
						t.Fatalf("%v: comparison %d of %v and %v is %v", l, op, a[i], b[i], dst[i])
					}
				}
				CompareScalarFunc(l, CompareOp(op))(dst[:n], a, s)
				for i := range n {
					if dst[i] != hold(a[i], s) {
						t.Fatalf("%v: comparison %d of %v and %v is %v", l, op, a[i], s, dst[i])
					}
				}
				if dst[n] {
					t.Fatalf("%v: comparison %d wrote behind its slice", l, op)
				}
			}
		}
	}
}

func TestMix_SameBits(t *testing.T) {
	r := newRandom(6)
	for _, n := range append(sizes, chunk+5) {
		a, b, s := random(r, n), random(r, n), random(r, 1)[0]
		cond := make([]bool, n)
		chosen := make([]float32, n)
		for i := range cond {
			cond[i] = r.IntN(2) == 0
			chosen[i] = choose(cond[i], a[i], b[i])
		}
		for _, l := range cpuid.Supported() {
			dst, all := guarded(n, 3)
			WhereFunc(l)(dst, cond, a, b)
			wantSame(t, fmt.Sprint("where ", l), dst, chosen)
			wantGuards(t, l.String(), all, n, 3)
			Fill(l, dst, s)
			for i := range dst {
				if !same(dst[i], s) {
					t.Fatalf("%v: element %d of %d is %v, want %v", l, i, n, dst[i], s)
				}
			}
			wantGuards(t, l.String(), all, n, 3)
		}
	}
}
