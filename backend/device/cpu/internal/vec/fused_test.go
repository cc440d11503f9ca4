package vec

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"

	"github.com/goart-dev/art/backend/device/cpu/internal/cpuid"
)

// fusedOperands are numbers of all kinds for a kernel.
type fusedOperands struct {
	in      [][]float32
	scalars []float32
}

func newFusedOperands(r *rand.Rand, f Fused, n int) (o fusedOperands) {
	numbers := random
	if r.IntN(2) == 0 {
		numbers = moderate
	}
	for range f.Streams {
		o.in = append(o.in, numbers(r, n))
	}
	o.scalars = numbers(r, f.Scalars)
	return o
}

// stepByStep returns the values that a kernel stores and the sum, from one operation after the other.
func stepByStep(l Level, f Fused, o fusedOperands) (stored [][]float32, sum float32) {
	n := len(o.in[0])
	values := slices.Clone(o.in)
	for _, s := range o.scalars {
		x := make([]float32, n)
		Fill(l, x, s)
		values = append(values, x)
	}
	for _, s := range f.Steps {
		x := make([]float32, n)
		if s.B < 0 {
			UnaryFunc(l, s.Unary)(x, values[s.A])
		} else {
			BinaryFunc(l, s.Binary)(x, values[s.A], values[s.B])
		}
		values = append(values, x)
	}
	for _, v := range f.Out {
		stored = append(stored, values[v])
	}
	if f.Sum >= 0 {
		sum = Sum(l, values[f.Sum])
	}
	return stored, sum
}

// run calls the kernel, which stores to out.
func (f Fused) run(l Level, o fusedOperands, out [][]float32) float32 {
	c := &FusedCall{N: len(o.in[0])}
	for i, x := range o.in {
		c.In[i] = unsafe.Pointer(unsafe.SliceData(x))
	}
	for i, x := range out {
		c.Out[i] = unsafe.Pointer(unsafe.SliceData(x))
	}
	copy(c.Scalars[:], o.scalars)
	f.Run(l, c)
	return c.Sum
}

func TestFused_IsItsSteps(t *testing.T) {
	r := newRandom(24)
	for _, f := range fusedTable {
		for _, n := range slices.Concat(sizes, sizes, sizes, []int{chunk}) {
			o := newFusedOperands(r, f, n)
			off := r.IntN(16)
			for _, l := range cpuid.Supported() {
				what := fmt.Sprintf("%s of %d %v", f.Name, n, l)
				want, sum := stepByStep(l, f, o)
				got, all := make([][]float32, len(f.Out)), make([][]float32, len(f.Out))
				for i := range got {
					got[i], all[i] = guarded(n, off)
				}
				if s := f.run(l, o, got); f.Sum >= 0 && !same(s, sum) {
					t.Fatalf("%s: the sum is %v, want %v", what, s, sum)
				}
				for i := range got {
					wantSame(t, what, got[i], want[i])
					wantGuards(t, what, all[i], n, off)
				}
				for i := range min(len(f.Out), f.Streams) { // each result over a stream
					own := fusedOperands{scalars: o.scalars}
					for _, x := range o.in {
						own.in = append(own.in, slices.Clone(x))
					}
					onto := slices.Clone(got)
					onto[i] = own.in[len(own.in)-1-i]
					f.run(l, own, onto)
					for k := range onto {
						wantSame(t, what+" in place", onto[k], want[k])
					}
				}
			}
		}
	}
}

// quotientsOfAdamW has the kernel of AdamW write a/b as the parameter: first moments a, a correction b, and a root of 1
// and all else 0.
func quotientsOfAdamW(t *testing.T, l Level, a []float32, b float32) {
	t.Helper()
	at := slices.IndexFunc(fusedTable, func(f Fused) bool { return f.Name == "adamW" })
	f, n := fusedTable[at], len(a)
	one, zero := make([]float32, n), make([]float32, n)
	Fill(l, one, 1)
	o := fusedOperands{in: [][]float32{zero, a, one, zero}, scalars: []float32{0, 1, 0, 1, 0, b, 1, 0, 0, -1}}
	got, want := [][]float32{make([]float32, n), make([]float32, n), make([]float32, n)}, make([]float32, n)
	f.run(l, o, got)
	divScalarPortable(want, a, b)
	for i, x := range want {
		want[i] = 0 - (x+0)*-1
	}
	wantSame(t, fmt.Sprintf("%v: AdamW divides by %x", l, b), got[0], want)
	o.in, o.scalars[6] = [][]float32{zero, one, a, zero}, b // the second moments, with a root of them
	wanted, _ := stepByStep(l, f, o)
	f.run(l, o, got)
	wantSame(t, fmt.Sprintf("%v: AdamW divides v by %x", l, b), got[0], wanted[0])
}

// Each exponent of both sides, with one numerator of another size in some vectors: products make quotients of those
// that are not extreme, and the processor the others.
func TestFused_Quotients(t *testing.T) {
	r := newRandom(27)
	for _, l := range cpuid.Supported() {
		for exponent := -149; exponent < 128; exponent++ {
			a := moderate(r, 16*9+5)
			for i := range a {
				a[i] = float32(math.Ldexp(1+r.Float64(), exponent))
				if i%3 == 0 {
					a[i] = -a[i]
				}
			}
			for range 3 {
				a[r.IntN(len(a))] = edges[r.IntN(len(edges))]
			}
			for _, e := range []int{-149, -127, -60, -21, -20, -19, -1, 0, 1, 18, 19, 20, 21, 60, 127} {
				quotientsOfAdamW(t, l, a, float32(math.Ldexp(1+r.Float64(), e)))
				quotientsOfAdamW(t, l, a, float32(math.Ldexp(1, e)))
			}
		}
		for _, b := range edges {
			quotientsOfAdamW(t, l, moderate(r, 100), b)
		}
	}
}

// The numerators of TestDivide_HardCases at the ends of what products make, for one divisor of 20,011.
func TestFused_HardQuotients(t *testing.T) {
	var list []float32
	for B := uint32(1 << 23); B < 1<<24; B += 20_011 {
		list = numerators(list[:0], uint64(B))
		for _, size := range []int{-100 - 23, 0, 99 - 23} {
			a := slices.Clone(list)
			for i := range a {
				a[i] = float32(math.Ldexp(float64(a[i]), size))
			}
			for _, e := range []int{-20 - 23, -24, 19 - 23} {
				quotientsOfAdamW(t, best(), a, float32(math.Ldexp(float64(B), e)))
			}
		}
	}
}
