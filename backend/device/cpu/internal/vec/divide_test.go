package vec

import (
	"fmt"
	"math"
	"math/bits"
	"os"
	"slices"
	"testing"

	"github.com/goart-dev/art/backend/device/cpu/internal/cpuid"
)

// wantQuotients compares with the division of the portable kernel.
func wantQuotients(t *testing.T, l Level, a []float32, b float32) {
	t.Helper()
	want, got, own := make([]float32, len(a)), make([]float32, len(a)), slices.Clone(a)
	divScalarPortable(want, a, b)
	divide(l, got, a, b)
	wantSame(t, fmt.Sprintf("%v: division by %x", l, b), got, want)
	divide(l, own, own, b)
	wantSame(t, fmt.Sprintf("%v: division by %x in place", l, b), own, want)
}

func TestDivide_SameBits(t *testing.T) {
	r := newRandom(25)
	for _, l := range cpuid.Supported() {
		for range 20_000 {
			n := 1 + r.IntN(140)
			a := moderate(r, n)
			spread := 1 << r.IntN(8)
			for i := range a {
				a[i] *= float32(math.Exp2(float64(r.IntN(2*spread) - spread)))
			}
			b := float32(math.Abs(r.NormFloat64()) * math.Exp2(float64(r.IntN(130)-65)))
			switch r.IntN(8) {
			case 0:
				a[r.IntN(n)] = edges[r.IntN(len(edges))]
			case 1:
				b = edges[r.IntN(len(edges))]
			case 2:
				b = math.Float32frombits(r.Uint32())
			}
			wantQuotients(t, l, a, b)
		}
	}
}

// Each exponent of both sides, with both zeros among the numerators.
func TestDivide_Exponents(t *testing.T) {
	r := newRandom(26)
	for _, l := range cpuid.Supported() {
		for exponent := -149; exponent < 128; exponent++ {
			a := moderate(r, 80)
			for i := range a {
				a[i] = float32(math.Ldexp(1+r.Float64(), exponent))
			}
			a[3], a[4] = 0, float32(math.Copysign(0, -1))
			for e := -149; e < 128; e++ {
				wantQuotients(t, l, a, float32(math.Ldexp(1+r.Float64(), e)))
			}
		}
	}
}

// TestDivide_HardCases tries all quotients of numbers of 24 bits that are closer than 4*2^-24 units of the last place
// to the middle between two floats. With whole numbers A, B of 24 bits and N odd, of 25 bits, that are A*2^s = B*N + d,
// where |d| <= 8, and s is 24 or, for A < B, 25. It takes one B of 7, with -short of 211, and all
// of them with ART_CI_FULL=1.
func TestDivide_HardCases(t *testing.T) {
	step := uint32(7)
	switch {
	case os.Getenv("ART_CI_FULL") != "":
		step = 1
	case testing.Short():
		step = 211
	}
	l, cases := best(), 0
	if l == Portable {
		t.Skip("it divides")
	}
	var a []float32
	got, want := make([]float32, 1<<17), make([]float32, 1<<17)
	for B := uint32(1 << 23); B < 1<<24; B += step {
		a = numerators(a[:0], uint64(B))
		b := float32(B)
		if len(a) > 0 && !quotients(l, got[:len(a)], a, b) {
			t.Fatalf("numerators of moderate size are said to be extreme")
		}
		divScalarPortable(want[:len(a)], a, b)
		wantSame(t, fmt.Sprintf("division by %x", b), got[:len(a)], want[:len(a)])
		cases += len(a)
	}
	t.Logf("%d cases", cases)
}

// numerators appends those that are hard to divide by B.
func numerators(list []float32, B uint64) []float32 {
	zeros := bits.TrailingZeros64(B)
	odd := B >> zeros
	inverse := odd
	for range 5 {
		inverse *= 2 - odd*inverse
	}
	for s := 24; s <= 25; s++ {
		period := uint64(1) << (s - zeros)
		for d := int64(-8); d <= 8; d++ {
			if d == 0 || d&(1<<zeros-1) != 0 {
				continue
			}
			first := uint64(-(d >> zeros)) * inverse // B*N + d is a multiple of 2^s
			for N := 1<<24 + (first-1<<24)&(period-1); N < 1<<25; N += period {
				A := (B*N + uint64(d)) >> s
				if N&1 == 1 && A >= 1<<23 && A < 1<<24 && (s == 24) == (A >= B) {
					list = append(list, float32(A))
				}
			}
		}
	}
	return list
}
