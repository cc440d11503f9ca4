package model

import (
	"math/rand/v2"
	"testing"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art/internal/graphx/graphtest"
)

const seed = 7

// widen converts to float64.
func widen(x []float32) []float64 {
	out := make([]float64, len(x))
	for i, v := range x {
		out[i] = float64(v)
	}
	return out
}

// sameBits compares numbers bit for bit, or within rounding: see graphtest.SameBits.
func sameBits(t testing.TB, want, got []float32, format string, args ...any) {
	t.Helper()
	graphtest.SameBits(t, want, got, format, args...)
}

// testConfig has groups of query heads, several layers, and dimensions that are whole vectors.
func testConfig() *Config {
	return &Config{
		ModelType: "qwen3", HiddenAct: "silu", VocabSize: 176, HiddenSize: 64, IntermediateSize: 144,
		NumLayers: 2, NumHeads: 4, NumKVHeads: 2, HeadDim: 32, MaxPositions: 160, RMSNormEps: 1e-6, RopeTheta: 10000,
		TieEmbeddings: true,
	}
}

// oddConfig has dimensions that no vector divides.
func oddConfig() *Config {
	return &Config{
		ModelType: "qwen3", HiddenAct: "silu", VocabSize: 171, HiddenSize: 53, IntermediateSize: 147,
		NumLayers: 2, NumHeads: 6, NumKVHeads: 3, HeadDim: 22, MaxPositions: 160, RMSNormEps: 1e-6, RopeTheta: 10000,
		TieEmbeddings: true,
	}
}

// testWeights have norms that differ from one.
func testWeights(t testing.TB, c *Config) *Weights {
	t.Helper()
	w, err := Random(c, seed)
	require.NoError(t, err)
	rng := rand.New(rand.NewPCG(seed, 1))
	for _, x := range w.Tensors {
		for i := range x.Data {
			if len(x.Shape) == 1 {
				x.Data[i] += float32(rng.NormFloat64() * 0.2)
			}
		}
	}
	return w
}

// testTokens are random ids.
func testTokens(rng *rand.Rand, c *Config, n int) []int32 {
	ids := make([]int32, n)
	for i := range ids {
		ids[i] = int32(rng.IntN(c.VocabSize))
	}
	return ids
}

// forward runs passes without a cache.
type forward struct {
	config *Config
	params *Params
	exec   *graph.Exec
}

// linearHook is Linear of a [Forward].
type linearHook = func(x *graph.Node, name string, base func(*graph.Node) *graph.Node) *graph.Node

// newForward compiles a model. extra are inputs that linear, if any, builds its hook from.
func newForward(
	t testing.TB, w *Weights, extra []*tensors.Tensor, linear func(extra []*graph.Node) linearHook,
) *forward {
	t.Helper()
	params, err := w.Params(graphtest.Device(t))
	require.NoError(t, err)
	n := len(params.Names)
	f := &forward{config: w.Config, params: params}
	f.exec, err = graph.NewExec(graphtest.Device(t), func(in []*graph.Node) []*graph.Node {
		m := &Forward{Config: w.Config, Param: params.Lookup(in)}
		if linear != nil {
			m.Linear = linear(in[n : len(in)-1])
		}
		tokens := in[len(in)-1]
		hidden, _ := m.Hidden(Input{Tokens: tokens})
		return []*graph.Node{m.LogProbs(graph.Reshape(hidden, -1, w.Config.HiddenSize))}
	})
	require.NoError(t, err)
	t.Cleanup(f.exec.Finalize)
	f.params.Tensors = append(f.params.Tensors, extra...)
	f.exec.SetMaxCache(-1)
	return f
}

// logprobs returns the log-softmax after each of ids [rows, T]: [rows, T, V].
func (f *forward) logprobs(t testing.TB, ids []int32, rows int) []float32 {
	t.Helper()
	in := append(f.params.Tensors[:len(f.params.Tensors):len(f.params.Tensors)],
		graphtest.Tensor(ids, rows, len(ids)/rows))
	out := graphtest.Call(t, f.exec, in...)
	defer out[0].MustFinalizeAll()
	return graphtest.Values[float32](t, out[0])
}
