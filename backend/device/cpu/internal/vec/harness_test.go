package vec

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/goart-dev/art/backend/device/cpu/internal/cpuid"
)

// edges are values at which float arithmetic is special.
var edges = []float32{
	0, float32(math.Copysign(0, -1)), 1, -1, 0.5, -0.5, 1.5, 2.5, float32(math.Inf(1)), float32(math.Inf(-1)),
	float32(math.NaN()),
	math.SmallestNonzeroFloat32, -math.SmallestNonzeroFloat32, 0x1p-126, -0x1.fffffcp-127, math.MaxFloat32,
	-math.MaxFloat32,
	88.72, 88.73, -87.3, -87.4, -103.9, -104, -104.1, 1e-8, -1e-8, 0x1p23, 0x1p24, -0x1p31, 0x1p31, 1e5, -1e5, 14.6, -14.6,
}

var sizes = []int{0, 1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 33, 63, 64, 65, 127, 131, 257, 1000, 1031}

// random returns n values: of moderate size, of every size, and special ones.
func random(r *rand.Rand, n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		switch r.IntN(8) {
		case 0:
			x[i] = edges[r.IntN(len(edges))]
		case 1:
			x[i] = math.Float32frombits(r.Uint32())
		default:
			x[i] = float32(r.NormFloat64() * 3)
		}
	}
	return x
}

// moderate returns n values of a normal distribution.
func moderate(r *rand.Rand, n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(r.NormFloat64())
	}
	return x
}

// same tells whether two floats have the same bits or are both NaN.
func same(a, b float32) bool {
	return math.Float32bits(a) == math.Float32bits(b) || isNaN(a) && isNaN(b)
}

func wantSame(t *testing.T, what string, got, want []float32) {
	t.Helper()
	for i := range want {
		if !same(got[i], want[i]) {
			t.Fatalf("%s: element %d of %d is %v (%08x), want %v (%08x)", what, i, len(want), got[i],
				math.Float32bits(got[i]), want[i], math.Float32bits(want[i]))
		}
	}
}

// fast returns the levels to compare with Portable.
func fast() []Level { return cpuid.Supported()[1:] }

const guard = float32(12345)

// guarded returns n elements, off elements from the start of an allocation, with guards before and behind.
func guarded(n, off int) (x, all []float32) {
	all = make([]float32, n+off+16)
	for i := range all {
		all[i] = guard
	}
	return all[off : off+n : off+n], all
}

func wantGuards(t *testing.T, what string, all []float32, n, off int) {
	t.Helper()
	for i, v := range all {
		if (i < off || i >= off+n) && v != guard {
			t.Fatalf("%s: wrote outside of its slice, at %d of %d", what, i-off, n)
		}
	}
}

func newRandom(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 1)) }

// best is the fastest level of this processor.
func best() Level {
	list := cpuid.Supported()
	return list[len(list)-1]
}
