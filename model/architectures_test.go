package model

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art/internal/fixtures"
	"github.com/goart-dev/art/internal/graphx/graphtest"
)

// The tests of this file run over all fixtures of internal/testdata/architectures. Those were made with transformers 4.57.1 and
// torch 2.15.0 on a CPU: python3 internal/testdata/architectures/make.py.

// eachFixture calls test with each fixture and its weights.
func eachFixture(t *testing.T, test func(t *testing.T, m *fixtures.Model, w *Weights)) {
	for _, m := range fixtures.Models(t) {
		t.Run(m.Name, func(t *testing.T) {
			w, err := Load(m.Dir)
			require.NoError(t, err)
			test(t, &m, w)
		})
	}
}

// withLogits compiles a model that returns its logits.
func withLogits(t *testing.T, w *Weights) *forward {
	t.Helper()
	f := newForward(t, w, nil, nil)
	exec, err := graph.NewExec(graphtest.Device(t), func(in []*graph.Node) []*graph.Node {
		m := &Forward{Config: w.Config, Param: f.params.Lookup(in)}
		hidden, _ := m.Hidden(Input{Tokens: in[len(in)-1]})
		return []*graph.Node{m.Logits(graph.Reshape(hidden, -1, w.Config.HiddenSize))}
	})
	require.NoError(t, err)
	t.Cleanup(exec.Finalize)
	f.exec = exec.SetMaxCache(-1)
	return f
}

// TestArchitectures_AllHaveFixtures: an architecture that is not compared with its reference is not supported.
func TestArchitectures_AllHaveFixtures(t *testing.T) {
	var want, got []string
	for _, a := range architectures() {
		want = append(want, a.modelType)
	}
	eachFixture(t, func(_ *testing.T, _ *fixtures.Model, w *Weights) { got = append(got, w.Config.ModelType) })
	require.Equal(t, want, slices.Compact(slices.Sorted(slices.Values(got))))
}

func TestArchitectures_MatchTransformers(t *testing.T) {
	eachFixture(t, func(t *testing.T, m *fixtures.Model, w *Weights) {
		got := withLogits(t, w).logprobs(t, m.Flat(), len(m.IDs))
		require.Len(t, got, len(m.Logits))
		worst := 0.0
		for i, want := range m.Logits {
			worst = max(worst, math.Abs(float64(want)-float64(got[i])))
		}
		t.Logf("largest difference %.2g", worst)
		require.LessOrEqual(t, worst, 1e-4)
	})
}

// TestArchitectures_GreedyMatchesTransformers: 32 tokens, each computed without a cache.
func TestArchitectures_GreedyMatchesTransformers(t *testing.T) {
	eachFixture(t, func(t *testing.T, m *fixtures.Model, w *Weights) {
		f, v := newForward(t, w, nil, nil), w.Config.VocabSize
		ids := slices.Clone(m.Prompt)
		for range m.Greedy {
			padded := make([]int32, 48)
			got := f.logprobs(t, append(ids[:len(ids):len(ids)], padded[len(ids):]...), 1)
			ids = append(ids, argmax(got[(len(ids)-1)*v:len(ids)*v]))
		}
		require.Equal(t, m.Greedy, ids[len(m.Prompt):])
	})
}

// TestArchitectures_Parity: company, padding and the cache change no bit.
func TestArchitectures_Parity(t *testing.T) {
	eachFixture(t, func(t *testing.T, m *fixtures.Model, w *Weights) {
		f, v := newForward(t, w, nil, nil), w.Config.VocabSize
		ids, length := m.IDs[0], len(m.IDs[0])
		want := f.logprobs(t, ids, 1)
		rng := rand.New(rand.NewPCG(seed, 50))

		padded := append(ids[:length:length], testTokens(rng, w.Config, 9)...)
		got := f.logprobs(t, slices.Concat(testTokens(rng, w.Config, 3*len(padded)), padded, testTokens(rng, w.Config, len(padded))), 5)
		sameBits(t, want, got[3*len(padded)*v:3*len(padded)*v+len(want)], "the fourth of five, padded, seed %d", seed)

		c, start := newCached(t, f, 2, 40), []int32{0, 0}
		for _, width := range []int{9, 1, 4, 1, 9} {
			piece := slices.Concat(ids[start[0]:int(start[0])+width], testTokens(rng, w.Config, width))
			got := c.logprobs(t, piece, start, []int{width, width})
			sameBits(t, want[int(start[0])*v:(int(start[0])+width)*v], got[:width*v], "%d tokens after %d, seed %d", width, start[0], seed)
			start[0], start[1] = start[0]+int32(width), start[1]+int32(width)
		}
	})
}

// TestArchitectures_RoundTrip: a configuration that is written and read again is the same, and so is the model.
func TestArchitectures_RoundTrip(t *testing.T) {
	eachFixture(t, func(t *testing.T, _ *fixtures.Model, w *Weights) {
		dir := t.TempDir()
		require.NoError(t, w.Save(dir))
		got, err := Load(dir)
		require.NoError(t, err)
		require.Equal(t, w.Config, got.Config)
		sameWeights(t, w, got)
	})
}

// TestTokenLogProbs_FrozenGradient: the gradient that is written down for a frozen head is the one that is derived, with scaled
// and capped logits too.
func TestTokenLogProbs_FrozenGradient(t *testing.T) {
	eachFixture(t, func(t *testing.T, _ *fixtures.Model, w *Weights) {
		c := w.Config
		params, err := w.Params(graphtest.Device(t))
		require.NoError(t, err)
		rng := rand.New(rand.NewPCG(seed, 51))
		hidden := make([]float32, 5*c.HiddenSize)
		for i := range hidden {
			hidden[i] = float32(rng.NormFloat64())
		}
		gradient := func(frozen bool) []float32 {
			in := append(params.Tensors[:len(params.Tensors):len(params.Tensors)],
				graphtest.Tensor(hidden, 5, c.HiddenSize), graphtest.Tensor(testTokens(rand.New(rand.NewPCG(seed, 52)), c, 5), 5, 1))
			out := graphtest.Run(t, graphtest.Device(t), func(in []*graph.Node) []*graph.Node {
				f, n := &Forward{Config: c, Param: params.Lookup(in), Frozen: frozen}, len(params.Names)
				return graph.Gradient(graph.ReduceAllSum(f.TokenLogProbs(in[n], in[n+1])), in[n])
			}, in...)
			return graphtest.Values[float32](t, out[0])
		}
		require.InDeltaSlice(t, gradient(false), gradient(true), 1e-4, "seed %d", seed)
	})
}
