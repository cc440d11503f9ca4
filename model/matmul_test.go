package model

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/dtypes/bfloat16"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art/internal/graphx"
	"github.com/goart-dev/art/internal/graphx/graphtest"
)

// TestMatMul_BFloat16: both matmuls, and their gradients, are those of the rounded operands, accumulated in float32.
func TestMatMul_BFloat16(t *testing.T) {
	const m, k, n = 3, 700, 5
	rng := rand.New(rand.NewPCG(seed, 70))
	draw := func(n int) (exact, rounded []float32) {
		for range n {
			x := float32(rng.NormFloat64())
			exact, rounded = append(exact, x), append(rounded, bfloat16.FromFloat32(x).Float32())
		}
		return exact, rounded
	}
	x, xr := draw(m * k)
	w, wr := draw(n * k)
	v, vr := draw(m * n)
	out := graphtest.Run(t, graphtest.Complete(t), func(in []*Node) []*Node {
		x, v := in[0], in[2]
		w := ConvertDType(in[1], dtypes.BFloat16)
		y := matMulTransposed(x, matrix{w: w})
		z := matMul(x, matrix{w: TransposeAllAxes(w, 1, 0)})
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
	_, err := w.ParamsAs(graphtest.Reference(t), dtypes.BFloat16)
	require.ErrorContains(t, err, "does not multiply bfloat16")
	_, err = w.ParamsAs(graphtest.Device(t), dtypes.Float64)
	require.ErrorContains(t, err, "want Float32, BFloat16 or Int8")
	if !graphx.ComputesBFloat16(graphtest.Device(t)) {
		_, err = w.ParamsAs(graphtest.Device(t), dtypes.Int8)
		require.ErrorContains(t, err, "does not multiply int8")
	}
}

// TestParamsAs_BFloat16: on a device that packs matrices, logprobs and gradients have the bits of float32 matrices of
// the rounded numbers. Others round activations too: results differ as the mean of 0.02 nats that TestRounded of
// backend/device/xla allows, and by 5 percent.
func TestParamsAs_BFloat16(t *testing.T) {
	for _, c := range []*Config{testConfig(), oddConfig()} {
		for _, c.TieEmbeddings = range []bool{true, false} {
			w := testWeights(t, c)
			halved := testWeights(t, c)
			for _, x := range halved.Tensors {
				for i := range x.Data {
					if len(x.Shape) == 2 {
						x.Data[i] = bfloat16.FromFloat32(x.Data[i]).Float32()
					}
				}
			}
			exact, err := halved.Params(graphtest.Device(t))
			require.NoError(t, err)
			rounded, err := w.ParamsAs(graphtest.Device(t), dtypes.BFloat16)
			require.NoError(t, err)
			ids := testTokens(rand.New(rand.NewPCG(seed, 71)), c, 39)
			want, got := lossAndGradient(t, c, exact, ids), lossAndGradient(t, c, rounded, ids)
			for i := range want {
				if graphx.Packs(graphtest.Device(t)) {
					sameBits(t, want[i], got[i], "output %d, tied %v, seed %d", i, c.TieEmbeddings, seed)
					continue
				}
				off, size, n := 0.0, 0.0, float64(len(want[i]))
				for j, v := range want[i] {
					off, size = off+math.Abs(float64(v-got[i][j])), size+math.Abs(float64(v))
				}
				t.Logf("output %d: off by %.2g of %.2g in the mean", i, off/n, size/n)
				require.Less(t, off, []float64{0.02 * n, 0.05 * size, 0.02 * n}[i], "output %d", i)
			}
		}
	}
}

// lossAndGradient returns the logprobs of ids[1:], the gradient of their sum to a number that is added to what each
// linear layer returns, and all logprobs.
func lossAndGradient(t *testing.T, c *Config, params *Params, ids []int32) [][]float32 {
	n := len(ids) - 1
	in := append(slices.Clone(params.Tensors), graphtest.Tensor(ids[:n], 1, n), graphtest.Tensor(ids[1:], n, 1),
		graphtest.Tensor([]float32{0}, 1, 1))
	out := graphtest.Run(t, graphtest.Device(t), func(in []*Node) []*Node {
		rest := in[len(params.Names):]
		f := &Forward{Config: c, Param: params.Lookup(in), Frozen: true,
			Linear: func(x *Node, _ string, base func(*Node) *Node) *Node {
				return Add(base(x), rest[2])
			}}
		hidden, _ := f.Hidden(Input{Tokens: rest[0]})
		hidden = Reshape(hidden, n, c.HiddenSize)
		lp := f.TokenLogProbs(hidden, rest[1])
		return []*Node{lp, Gradient(ReduceAllSum(lp), rest[2])[0], f.LogProbs(hidden)}
	}, in...)
	var values [][]float32
	for _, x := range out {
		values = append(values, graphtest.Values[float32](t, x))
	}
	return values
}
