package model

import (
	"math/rand/v2"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/dtypes/bfloat16"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art/internal/graphx/graphtest"
)

// TestTimes_BFloat16: both products, and their gradients, are those of the rounded sides, summed up in float32.
func TestTimes_BFloat16(t *testing.T) {
	const m, k, n = 3, 700, 5
	rng := rand.New(rand.NewPCG(seed, 70))
	draw := func(n int) (exact, halves []float32) {
		for range n {
			x := float32(rng.NormFloat64())
			exact, halves = append(exact, x), append(halves, bfloat16.FromFloat32(x).Float32())
		}
		return exact, halves
	}
	x, xr := draw(m * k)
	w, wr := draw(n * k)
	v, vr := draw(m * n)
	out := graphtest.Run(t, graphtest.Reference(t), func(in []*Node) []*Node {
		x, v := in[0], in[2]
		w := ConvertDType(in[1], dtypes.BFloat16)
		y := timesT(x, w)
		z := times(x, TransposeAllAxes(w, 1, 0))
		require.Equal(t, dtypes.Float32, y.DType())
		return []*Node{y, z, Gradient(ReduceAllSum(Mul(y, v)), x)[0], Gradient(ReduceAllSum(Mul(z, v)), x)[0]}
	}, graphtest.Tensor(x, m, k), graphtest.Tensor(w, n, k), graphtest.Tensor(v, m, n))
	for o := range 2 {
		y, dx := graphtest.Values[float32](t, out[o]), graphtest.Values[float32](t, out[2+o])
		for i := range m {
			for j := range n {
				sum := 0.0
				for l := range k {
					sum += float64(xr[i*k+l]) * float64(wr[j*k+l])
				}
				require.InDelta(t, sum, y[i*n+j], 1e-4, "seed %d", seed)
			}
			for l := range k {
				sum := 0.0
				for j := range n {
					sum += float64(vr[i*n+j]) * float64(wr[j*k+l])
				}
				require.InDelta(t, sum, dx[i*k+l], 1e-5, "seed %d", seed)
			}
		}
	}
}

func TestParamsAs_Errors(t *testing.T) {
	w := testWeights(t, testConfig())
	_, err := w.ParamsAs(graphtest.Device(t), dtypes.BFloat16)
	require.ErrorContains(t, err, "does not multiply bfloat16")
	_, err = w.ParamsAs(graphtest.Device(t), dtypes.Int8)
	require.ErrorContains(t, err, "want Float32 or BFloat16")
}
