//go:build cgo

package xla_test

import (
	"math/rand/v2"
	"testing"

	"github.com/gomlx/compute"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art/internal/graphx/graphtest"
	"github.com/goart-dev/art/lora"
	"github.com/goart-dev/art/model"
)

// TestTiles_LikeCPU: a sequence that XLA attends to in tiles has the logprobs and the gradient of an adapter that the
// CPU device computes, which has attention of its own. Layers are computed again for the gradient, or not.
func TestTiles_LikeCPU(t *testing.T) {
	w, err := model.Random(&model.Config{
		ModelType: "qwen3", HiddenAct: "silu", VocabSize: 67, HiddenSize: 48, IntermediateSize: 64,
		NumLayers: 1, NumHeads: 4, NumKVHeads: 2, HeadDim: 16, MaxPositions: 2048, RMSNormEps: 1e-6, RopeTheta: 10000,
	}, seed)
	require.NoError(t, err)
	a := adapter(t, w.Config)
	ids := tokens(rand.New(rand.NewPCG(seed, 12)), w.Config, 1100)
	run := func(on compute.Backend, recompute bool) [][]float32 {
		params, err := w.Params(on)
		require.NoError(t, err)
		inputs := append([]*tensors.Tensor{}, params.Tensors...)
		n := len(inputs)
		for _, p := range a.Params() {
			inputs = append(inputs, graphtest.Tensor(p.Data, p.Shape...))
		}
		inputs = append(inputs, graphtest.Tensor(ids, 1, len(ids)))
		out := graphtest.Run(t, on, func(in []*Node) []*Node {
			last := len(in) - 1
			f := &model.Forward{Config: w.Config, Param: params.Lookup(in[:n])}
			f.Linear, _ = a.Hooks(lora.Nodes{Trained: in[n:last]})
			input := model.Input{Tokens: in[last]}
			gradient := Gradient
			var hidden *Node
			if recompute {
				var r *model.Recomputation
				hidden, r = f.Recomputed(input)
				gradient = r.Gradient
			} else {
				hidden, _ = f.Hidden(input)
			}
			lp := f.LogProbs(Reshape(hidden, -1, w.Config.HiddenSize))
			first := Slice(lp, AxisRange(), AxisRange(0, 1))
			return append([]*Node{lp}, gradient(ReduceAllSum(Mul(first, first)), in[n:last]...)...)
		}, inputs...)
		var values [][]float32
		for _, x := range out {
			values = append(values, graphtest.Values[float32](t, x))
		}
		return values
	}
	want := run(graphtest.Device(t), false)
	for _, recompute := range []bool{false, true} {
		if recompute && testing.Short() {
			continue // seconds of compilation
		}
		got := run(device(t, configs[0]), recompute)
		d := farthest(t, want[0], got[0])
		most := 0.0
		for i, g := range want[1:] {
			require.Greater(t, norm(g, nil), 1e-7, "the test wants a gradient")
			most = max(most, norm(g, got[1:][i])/norm(g, nil))
		}
		t.Logf("logprobs differ by %.2g, gradients by %.2g of their length", d, most)
		require.Less(t, d, rounding, "seed %d", seed)
		require.Less(t, most, 1e-4, "seed %d", seed)
	}
}
