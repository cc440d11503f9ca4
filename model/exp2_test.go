package model

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestExp2: within 1e-13 of math.Exp2, never above 1, exact where the result is a power of two.
func TestExp2(t *testing.T) {
	exp2 := func(x float64) float64 {
		list := []float64{x}
		exp2(list)
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
