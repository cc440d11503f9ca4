package model

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestExp2_LikeMath, bit for bit, in the range of weights and outside of it.
func TestExp2_LikeMath(t *testing.T) {
	rng := rand.New(rand.NewPCG(seed, 75))
	check := func(x float64) {
		require.Equal(t, math.Float64bits(math.Exp2(x)), math.Float64bits(exp2(x)), "%v, seed %d", x, seed)
	}
	for _, x := range []float64{0, math.Copysign(0, -1), 0.5, -0.5, -1, -999.5, -1000, -1023.5, -1074, -1080, 1023.9,
		1024, math.Inf(1), math.Inf(-1), 5e-324, -1e-300} {
		check(x)
	}
	require.True(t, math.IsNaN(exp2(math.NaN())))
	for range 200_000 {
		check(-30 * rng.ExpFloat64())
		check(1200 * (rng.Float64() - 0.5) * 2)
		check(rng.NormFloat64())
	}
}
