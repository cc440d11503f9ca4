package sampling

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

const seed = 7

// TestWeigh: within 1e-13 of math.Exp2, never above 1, exact where the result is a power of two, and 0 far below.
func TestWeigh(t *testing.T) {
	exp2 := func(x float64) float64 {
		weights := make([]float64, 5)
		weigh(weights, []float32{float32(x), 0, 0, 0, float32(x)}, 0, 1)
		require.Equal(t, weights[0], weights[4], "with vectors, and without")
		return weights[0]
	}
	for _, x := range []float64{0, math.Copysign(0, -1), -1, -2, -999, -1000} {
		require.Equal(t, math.Exp2(x), exp2(x), "%v", x)
	}
	for _, x := range []float64{-1000.5, -1074, math.Inf(-1)} {
		require.Zero(t, exp2(x), "%v", x)
	}
	rng := rand.New(rand.NewPCG(seed, 75))
	for range 200_000 {
		for _, x := range []float64{-30 * rng.ExpFloat64(), -1000 * rng.Float64(), -1e-9 * rng.Float64()} {
			x = float64(float32(x))
			if x < -1000 {
				continue
			}
			got := exp2(x)
			require.InEpsilon(t, math.Exp2(x), got, 1e-13, "%v, seed %d", x, seed)
			require.LessOrEqual(t, got, 1.0)
		}
	}
}

// TestVectors: weights, sums and the largest number are those of the portable code, bit for bit.
func TestVectors(t *testing.T) {
	rng := rand.New(rand.NewPCG(seed, 76))
	for n := 1; n < 300; n++ {
		x := make([]float32, n)
		for i := range x {
			if x[i] = float32(-math.Exp(12*rng.Float64() - 6)); rng.IntN(20) == 0 {
				x[i] = float32(math.Inf(-1))
			}
		}
		most := x[0]
		for _, v := range x {
			most = max(most, v)
		}
		require.Equal(t, most, largest(x), "%v", x)
		best, scale := float64(most), math.Log2E/(0.1+rng.Float64())
		if math.IsInf(best, -1) {
			best = 0
		}
		want, got := make([]float64, n), make([]float64, n)
		sum := weighRest(want, x, best, scale, [4]float64{})
		require.Equal(t, sum, weigh(got, x, best, scale), "%d numbers", n)
		require.Equal(t, want, got)
	}
}

// BenchmarkWeigh is of a block of sampling.
func BenchmarkWeigh(b *testing.B) {
	x, weights := make([]float32, 256), make([]float64, 256)
	for i := range x {
		x[i] = -30 * float32(i) / 256
	}
	b.Run("vector", func(b *testing.B) {
		for b.Loop() {
			weigh(weights, x, 0, 1)
		}
	})
	b.Run("portable", func(b *testing.B) {
		for b.Loop() {
			weighRest(weights, x, 0, 1, [4]float64{})
		}
	})
}
