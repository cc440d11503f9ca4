package vec

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
)

// exactFMA rounds once, by way of big floats.
func exactFMA(a, b, c float32) float32 {
	if f := float64(a)*float64(b) + float64(c); math.IsNaN(f) || math.IsInf(f, 0) || f == 0 {
		return float32(f)
	}
	wide := func(x float32) *big.Float { return new(big.Float).SetPrec(1000).SetFloat64(float64(x)) }
	sum := new(big.Float).SetPrec(1000)
	sum.Add(sum.Mul(wide(a), wide(b)), wide(c))
	f, _ := sum.Float32()
	return f
}

// tieCase returns operands whose exact result is next to the middle of two floats.
func tieCase(r *rand.Rand) (a, b, c float32) {
	m := func() float32 { return float32(1<<23+r.IntN(1<<23)) * 0x1p-23 }
	a, b = m(), m()
	e := float32(math.Ldexp(1, r.IntN(60)-30))
	product := float64(a) * float64(b)
	middle := float32(product) * float32(math.Ldexp(1, r.IntN(54)))
	if r.IntN(2) == 0 {
		middle = -middle
	}
	return a * e, b, middle * e
}

func TestFMA_RoundsOnce(t *testing.T) {
	r := newRandom(3)
	for i := range 400_000 {
		var a, b, c float32
		switch i % 4 {
		case 0:
			a, b, c = tieCase(r)
		case 1: // denormal results
			a, b = float32(r.NormFloat64()*0x1p-70), float32(r.NormFloat64()*0x1p-70)
			c = float32(r.NormFloat64() * 0x1p-130)
		case 2:
			a, b, c = math.Float32frombits(r.Uint32()), math.Float32frombits(r.Uint32()), math.Float32frombits(r.Uint32())
		default: // few bits, so that ties are common
			a, b = float32(1+r.IntN(1<<12)), float32(1+r.IntN(1<<12))*0x1p-30
			c = float32(r.IntN(1<<24)) * float32(math.Ldexp(1, -r.IntN(40)))
		}
		if got, want := fma(a, b, c), exactFMA(a, b, c); !same(got, want) {
			t.Fatalf("fma(%x, %x, %x) = %x, want %x", a, b, c, got, want)
		}
	}
}

// The middle of two floats, and a summand far below that decides.
func TestFMA_Ties(t *testing.T) {
	for _, c := range []struct{ a, b, c, want float32 }{
		{1 + 0x1p-12, 1 + 0x1p-12, 0x1p-60, 1 + 0x1p-11 + 0x1p-23},
		{1 + 0x1p-12, 1 + 0x1p-12, -0x1p-60, 1 + 0x1p-11},
		{1 + 0x1p-12, 1 + 0x1p-12, 0, 1 + 0x1p-11},
	} {
		if got := fma(c.a, c.b, c.c); got != c.want {
			t.Errorf("fma(%x, %x, %x) = %x, want %x", c.a, c.b, c.c, got, c.want)
		}
	}
}
