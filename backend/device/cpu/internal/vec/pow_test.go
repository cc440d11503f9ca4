package vec

import (
	"math"
	"testing"
)

func TestPow_Accuracy(t *testing.T) {
	r := newRandom(24)
	for i := range 300_000 {
		x, y := float32(math.Exp(r.NormFloat64()*4)), float32(r.NormFloat64()*8)
		if i%3 == 0 {
			x, y = -x, float32(r.IntN(40)-20)
		}
		var got [1]float32
		PowScalar(got[:], []float32{x}, y)
		if want := math.Pow(float64(x), float64(y)); ulps(got[0], want) > 0.51 {
			t.Fatalf("%v to the power of %v is %v, want %v", x, y, got[0], want)
		}
	}
}

func TestPow_Edges(t *testing.T) {
	exponents := append([]float32{2, 3, -3, 0.5, -1, 1e10, 16777215}, edges...)
	for _, x := range edges {
		a, got := make([]float32, len(exponents)), make([]float32, len(exponents))
		for i := range a {
			a[i] = x
		}
		Pow(got, a, exponents)
		for i, y := range exponents {
			if want := math.Pow(float64(x), float64(y)); ulps(got[i], want) > 0.51 {
				t.Errorf("%v to the power of %v is %v, want %v", x, y, got[i], want)
			}
		}
	}
}
