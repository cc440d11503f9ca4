package fma

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
)

// exactFMA computes a*b + c with numbers of any length.
func exactFMA(a, b, c float32) float32 {
	p := float64(a) * float64(b)
	s := p + float64(c)
	if s == 0 || math.IsNaN(s) || math.IsInf(s, 0) {
		return float32(s)
	}
	sum := new(big.Float).SetPrec(2000).SetFloat64(p)
	sum.Add(sum, big.NewFloat(float64(c)))
	f, _ := sum.Float32()
	return f
}

func check(t *testing.T, a, b, c float32) {
	t.Helper()
	got, want := Float32(a, b, c), exactFMA(a, b, c)
	if !same(got, want) {
		t.Fatalf("Float32(%x, %x, %x) = %x, want %x", a, b, c, got, want)
	}
}

func TestFloat32_Special(t *testing.T) {
	values := []float32{0, 1, 1.5, math.SmallestNonzeroFloat32, 3 * math.SmallestNonzeroFloat32, 0x1p-126, 0x1.fffffep-127,
		math.MaxFloat32, 0x1p127, 0x1p-149, 0x1p-75, 0x1.000002p0, 0x1.fffffep-1, 0x1p24, 0x1p-24, 0x1p-25, 0x1.fffffep-25,
		0x1p-60, 0x1.8p-25, float32(math.Inf(1)), float32(math.NaN())}
	for _, v := range values[:len(values)-1] {
		values = append(values, -v)
	}
	for _, a := range values {
		for _, b := range values {
			for _, c := range values {
				check(t, a, b, c)
			}
		}
	}
}

// Sums near the middle between two float32 numbers, where rounding twice goes wrong.
func TestFloat32_Ties(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 200_000 {
		a := math.Float32frombits(uint32(127+r.IntN(3))<<23 | r.Uint32()&0x7fffff)
		b := math.Float32frombits(uint32(127-r.IntN(60))<<23 | r.Uint32()&0x7fffff&^(1<<r.IntN(23)-1))
		c := float32(math.Ldexp(float64(1+r.IntN(1<<r.IntN(24))), r.IntN(40)-20))
		check(t, a, b, c)
		check(t, a, -b, c)
		check(t, math.Float32frombits(0x3f800001), math.Float32frombits(uint32(1+r.IntN(254))<<23), c)
	}
}

func TestFloat32_Random(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 300_000 {
		a, b, c := math.Float32frombits(r.Uint32()), math.Float32frombits(r.Uint32()), math.Float32frombits(r.Uint32())
		check(t, a, b, c)
		// c of the size of the product, and results below the normal numbers
		p := float64(a) * float64(b)
		check(t, a, b, float32(p*(r.Float64()-0.5)*4))
		a = math.Float32frombits(uint32(60+r.IntN(10))<<23 | r.Uint32()&0x7fffff)
		b = math.Float32frombits(uint32(40+r.IntN(30))<<23 | r.Uint32()&0x7fffff)
		check(t, a, b, math.Float32frombits(r.Uint32()&0x807fffff))
	}
}

// Numbers of few bits, so that ties are common.
func TestFloat32_FewBits(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for range 100_000 {
		a, b := float32(1+r.IntN(1<<12)), float32(1+r.IntN(1<<12))*0x1p-30
		check(t, a, b, float32(r.IntN(1<<24))*float32(math.Ldexp(1, -r.IntN(40))))
	}
}

// The middle of two floats, and a summand far below that decides.
func TestFloat32_Middle(t *testing.T) {
	for _, c := range []struct{ a, b, c, want float32 }{
		{1 + 0x1p-12, 1 + 0x1p-12, 0x1p-60, 1 + 0x1p-11 + 0x1p-23},
		{1 + 0x1p-12, 1 + 0x1p-12, -0x1p-60, 1 + 0x1p-11},
		{1 + 0x1p-12, 1 + 0x1p-12, 0, 1 + 0x1p-11},
	} {
		if got := Float32(c.a, c.b, c.c); got != c.want {
			t.Errorf("Float32(%x, %x, %x) = %x, want %x", c.a, c.b, c.c, got, c.want)
		}
	}
}

// same reports whether two numbers have the same bits, or are both no number.
func same(x, y float32) bool {
	return math.Float32bits(x) == math.Float32bits(y) || x != x && y != y
}
