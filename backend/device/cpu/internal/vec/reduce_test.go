package vec

import (
	"fmt"
	"math"
	"testing"

	"github.com/goart-dev/art/backend/device/cpu/internal/cpuid"
)

// lanesSum adds in the order that the package promises.
func lanesSum(x []float32) float32 {
	var w [64]float32
	for i, v := range x {
		w[i%64] += v
	}
	for half := 32; half > 0; half /= 2 {
		for i := range half {
			w[i] += w[i+half]
		}
	}
	return w[0]
}

var reductions = map[string]func(l Level, x []float32) float32{
	"sum": Sum, "squares": SumSquares, "max": Max, "min": Min, "largest": maxAbs,
	"dot": func(l Level, x []float32) float32 { return Dot(l, x, x[:len(x):len(x)]) },
	"arg": func(l Level, x []float32) float32 { return float32(ArgMax(l, x)) },
	"log": func(l Level, x []float32) float32 { return LogSoftmaxAt(l, append(x, 1), 0, 0.5) },
}

func TestReduce_SameBits(t *testing.T) {
	r := newRandom(7)
	for name, f := range reductions {
		for _, n := range append(sizes, chunk-1, chunk+1, 2*chunk+64) {
			for _, x := range [][]float32{random(r, n), moderate(r, n)} {
				want := f(Portable, x)
				for _, l := range fast() {
					if got := f(l, x); !same(got, want) {
						t.Fatalf("%s of %d at %v is %v, want %v", name, n, l, got, want)
					}
				}
			}
		}
	}
}

func TestSum_Order(t *testing.T) {
	r := newRandom(8)
	for _, n := range append(sizes, chunk+100) {
		x := moderate(r, n)
		squares := make([]float32, n)
		for i, v := range x {
			squares[i] = v * v
		}
		for _, l := range cpuid.Supported() {
			if got, want := Sum(l, x), lanesSum(x); !same(got, want) {
				t.Errorf("%v: the sum of %d is %v, want %v", l, n, got, want)
			}
			if got, want := Sum(l, append(x, make([]float32, 77)...)), lanesSum(x); !same(got, want) {
				t.Errorf("%v: zeros change the sum of %d: %v, want %v", l, n, got, want)
			}
			if got, want := SumSquares(l, x), lanesSum(squares); !same(got, want) {
				t.Errorf("%v: the sum of %d squares is %v, want %v", l, n, got, want)
			}
			if got, want := Dot(l, x, x), lanesSum(squares); !same(got, want) {
				t.Errorf("%v: the product of %d is %v, want %v", l, n, got, want)
			}
		}
	}
}

func TestMax_Values(t *testing.T) {
	nan, inf := edges[10], float32(math.Inf(1))
	for _, l := range cpuid.Supported() {
		for _, n := range sizes[1:] {
			for at := range min(n, 70) {
				x := make([]float32, n)
				for i := range x {
					x[i] = -2
				}
				x[at] = -1
				if got := Max(l, x); got != -1 || ArgMax(l, x) != at {
					t.Fatalf("%v: the largest of %d is %v at %d, want -1 at %d", l, n, got, ArgMax(l, x), at)
				}
				x[at] = -3
				if got := Min(l, x); got != -3 {
					t.Fatalf("%v: the least of %d is %v, want -3", l, n, got)
				}
				x[at] = nan
				if !isNaN(Max(l, x)) || !isNaN(Min(l, x)) || ArgMax(l, x) != at {
					t.Fatalf("%v: NaN at %d of %d is lost", l, at, n)
				}
			}
		}
		if Max(l, nil) != -inf || Min(l, nil) != inf || Sum(l, nil) != 0 || ArgMax(l, nil) != -1 {
			t.Errorf("%v: wrong results for an empty row", l)
		}
		x := make([]float32, 5000)
		x[2500], x[4000] = 1, 1
		if got := ArgMax(l, x); got != 2500 {
			t.Errorf("%v: the first of the largest is at %d, want 2500", l, got)
		}
	}
}

func TestReduceColumns(t *testing.T) {
	r := newRandom(9)
	for _, n := range []int{0, 1, 17, 100, columnBlock + 3} {
		const rows = 5
		stride := n + 3
		x, start := random(r, rows*stride), random(r, n)
		want := append([]float32(nil), start...)
		for i := range rows {
			for j := range want {
				want[j] += x[i*stride+j]
			}
		}
		for _, l := range cpuid.Supported() {
			c := append([]float32(nil), start...)
			ReduceColumns(l, OpAdd, c, x, rows, stride)
			wantSame(t, fmt.Sprint(l, " columns"), c, want)
		}
	}
}
