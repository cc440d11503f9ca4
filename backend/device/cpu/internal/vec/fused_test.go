package vec

import (
	"fmt"
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
