package graphx

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/stretchr/testify/require"
	"gonum.org/v1/gonum/diff/fd"

	"github.com/goart-dev/art/internal/graphx/graphtest"
)

const seed = 1

// normal returns n random numbers.
func normal[T float32 | float64](src *rand.Rand, n int) []T {
	out := make([]T, n)
	for i := range out {
		out[i] = T(src.NormFloat64())
	}
	return out
}

// plainMatMul is x [B, M, K] times w [B, K, N] in float64, and the same with absolute values.
func plainMatMul[T float32 | float64](x, w []T, b, m, k, n int) (y, size []float64) {
	y, size = make([]float64, b*m*n), make([]float64, b*m*n)
	for row := range b * m {
		for i := range k {
			for col := range n {
				v := float64(x[row*k+i]) * float64(w[(row/m*k+i)*n+col])
				y[row*n+col] += v
				size[row*n+col] += math.Abs(v)
			}
		}
	}
	return y, size
}

// matMulExec compiles BatchMatMul.
func matMulExec(t testing.TB) *graph.Exec {
	return newExec(t, graphtest.Device(t), func(in []*graph.Node) *graph.Node { return BatchMatMul(in[0], in[1]) })
}

// TestBatchMatMul_MatchesFloat64 bounds the error by that of any order of summation: K u Σ|x w|, with u = 2^-24 the
// rounding of a float32.
func TestBatchMatMul_MatchesFloat64(t *testing.T) {
	exec := matMulExec(t)
	src := rand.New(rand.NewPCG(seed, 1))
	for _, k := range []int{1, 64, 127, 128, 129, 256, 300} {
		for _, s := range []struct{ batch, dims []int }{
			{nil, []int{5, 7}}, {nil, []int{1, 48}}, {nil, []int{33, 32}}, {[]int{3}, []int{4, 32}}, {[]int{2, 3}, []int{2, 5}},
		} {
			b, m, n := 1, s.dims[0], s.dims[1]
			for _, d := range s.batch {
				b *= d
			}
			x, w := normal[float32](src, b*m*k), normal[float32](src, b*k*n)
			got := call[float32](t, exec, tensor(x, append(s.batch[:len(s.batch):len(s.batch)], m, k)...),
				tensor(w, append(s.batch[:len(s.batch):len(s.batch)], k, n)...))
			want, size := plainMatMul(x, w, b, m, k, n)
			require.Len(t, got, len(want))
			for i := range want {
				require.InDelta(t, want[i], got[i], float64(k)*0x1p-24*size[i], "seed %d, K %d, shape %+v, element %d", seed, k, s,
					i)
			}
		}
	}
}

// TestBatchMatMul_GradientMatchesFiniteDifferences differentiates Σ tanh(x w) target in float64, on both sides of the
// length of a panel.
func TestBatchMatMul_GradientMatchesFiniteDifferences(t *testing.T) {
	for _, k := range []int{1, 64, 128, 129, 300} {
		t.Run(fmt.Sprint(k), func(t *testing.T) {
			const b, m, n = 2, 2, 3
			src := rand.New(rand.NewPCG(seed, uint64(k)))
			x, target := normal[float64](src, b*m*k), normal[float64](src, b*m*n)
			w := normal[float64](src, b*k*n)
			for i := range w {
				w[i] /= math.Sqrt(float64(k)) // tanh must not saturate
			}
			exec := newExec(t, graphtest.Device(t), func(in []*graph.Node) *graph.Node {
				loss := graph.ReduceAllSum(graph.Mul(graph.Tanh(BatchMatMul(in[0], in[1])), in[2]))
				g := graph.Gradient(loss, in[0], in[1])
				return graph.Concatenate([]*graph.Node{graph.Reshape(g[0], -1), graph.Reshape(g[1], -1)}, 0)
			})
			got := call[float64](t, exec, tensor(x, b, m, k), tensor(w, b, k, n), tensor(target, b, m, n))
			plain := func(xw []float64) float64 {
				y, _ := plainMatMul(xw[:len(x)], xw[len(x):], b, m, k, n)
				sum := 0.0
				for i := range y {
					sum += math.Tanh(y[i]) * target[i]
				}
				return sum
			}
			want := fd.Gradient(nil, plain, append(append([]float64{}, x...), w...),
				&fd.Settings{Formula: fd.Central, Step: 1e-5})
			require.InDeltaSlice(t, want, got, 1e-8, "seed %d", seed)
		})
	}
}
