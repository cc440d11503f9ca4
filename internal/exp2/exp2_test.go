package exp2

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

const seed = 1

// TestReplace: within 1e-13 of math.Exp2, never above 1, exact where the result is a power of two.
func TestReplace(t *testing.T) {
	exp2 := func(x float64) float64 {
		list := []float64{x}
		Replace(list)
		return list[0]
	}
	rng := rand.New(rand.NewPCG(seed, 75))
	for _, x := range []float64{0, math.Copysign(0, -1), -1, -2, -999, -1000} {
		require.Equal(t, math.Exp2(x), exp2(x), "%v", x)
	}
	for _, x := range []float64{-1000.5, -1074, math.Inf(-1)} {
		require.Zero(t, exp2(x), "%v", x)
	}
	for range 200_000 {
		for _, x := range []float64{-30 * rng.ExpFloat64(), -1000 * rng.Float64(), -1e-9 * rng.Float64()} {
			if x < -1000 {
				continue
			}
			got := exp2(x)
			require.InEpsilon(t, math.Exp2(x), got, 1e-13, "%v, seed %d", x, seed)
			require.LessOrEqual(t, got, 1.0)
		}
	}
}

// TestReplace_Lists: the bits of a number do not depend on its place in a list, or on vectors.
func TestReplace_Lists(t *testing.T) {
	rng := rand.New(rand.NewPCG(seed, 76))
	for n := range 70 {
		list := make([]float64, n)
		for i := range list {
			list[i] = -math.Exp(20*rng.Float64() - 10)
			if rng.IntN(20) == 0 {
				list[i] = math.Inf(-1)
			}
		}
		want := slices.Clone(list)
		portable(want)
		Replace(list)
		for i := range list {
			require.Equal(t, math.Float64bits(want[i]), math.Float64bits(list[i]), "%d of %d", i, n)
		}
	}
}

// BenchmarkReplace replaces a block of sampling.
func BenchmarkReplace(b *testing.B) {
	x, list := make([]float64, 256), make([]float64, 256)
	for i := range x {
		x[i] = -30 * float64(i) / 256
	}
	for name, f := range map[string]func([]float64){"vector": Replace, "portable": portable} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				copy(list, x)
				f(list)
			}
		})
	}
}
