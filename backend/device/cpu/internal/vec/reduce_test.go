package vec

import (
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
	"sum": Sum, "max": Max, "min": Min, "largest": func(l Level, x []float32) float32 { return kernelsOf[l].maxAbsLanes(nil, x) },
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
		for _, l := range cpuid.Supported() {
			if got, want := Sum(l, x), lanesSum(x); !same(got, want) {
				t.Errorf("%v: the sum of %d is %v, want %v", l, n, got, want)
			}
			if got, want := Sum(l, append(x, make([]float32, 77)...)), lanesSum(x); !same(got, want) {
				t.Errorf("%v: zeros change the sum of %d: %v, want %v", l, n, got, want)
			}
		}
	}
}

// Rows that are reduced together have the bits of each by itself, and nothing behind the results is written.
func TestReduce_Rows(t *testing.T) {
	r := newRandom(9)
	all := map[string]struct {
		rows func(l Level, dst, x []float32, n int)
		row  func(l Level, x []float32) float32
	}{"sum": {SumRows, Sum}, "max": {MaxRows, Max}, "min": {MinRows, Min}}
	for name, f := range all {
		for _, n := range append(sizes, chunk+1) {
			for _, count := range []int{0, 1, 2, 5} {
				x := random(r, n*count)
				for _, l := range cpuid.Supported() {
					got, whole := guarded(count, 3)
					f.rows(l, got, x, n)
					for i := range got {
						if want := f.row(Portable, x[i*n:][:n]); !same(got[i], want) {
							t.Fatalf("%s at %v: row %d of %d, of %d elements, is %v, want %v", name, l, i, count, n, got[i], want)
						}
					}
					wantGuards(t, name, whole, count, 3)
				}
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
				if got := Max(l, x); got != -1 {
					t.Fatalf("%v: the largest of %d is %v, want -1", l, n, got)
				}
				x[at] = -3
				if got := Min(l, x); got != -3 {
					t.Fatalf("%v: the least of %d is %v, want -3", l, n, got)
				}
				x[at] = nan
				if !isNaN(Max(l, x)) || !isNaN(Min(l, x)) {
					t.Fatalf("%v: NaN at %d of %d is lost", l, at, n)
				}
			}
		}
		if Max(l, nil) != -inf || Min(l, nil) != inf || Sum(l, nil) != 0 {
			t.Errorf("%v: wrong results for an empty row", l)
		}
	}
}
