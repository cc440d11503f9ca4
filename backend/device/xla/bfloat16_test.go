//go:build cgo

package xla_test

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/dtypes/bfloat16"
	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art/grpo"
	"github.com/goart-dev/art/internal/engine"
	"github.com/goart-dev/art/internal/graphx/graphtest"
	"github.com/goart-dev/art/internal/trainer"
	"github.com/goart-dev/art/model"
)

// rounded are weights whose matrices are rounded to bfloat16.
func rounded(w *model.Weights) *model.Weights {
	out := &model.Weights{Config: w.Config, Tensors: slices.Clone(w.Tensors)}
	for i, x := range out.Tensors {
		if len(x.Shape) == 2 {
			out.Tensors[i].Data = slices.Clone(x.Data)
			for j, v := range x.Data {
				out.Tensors[i].Data[j] = bfloat16.FromFloat32(v).Float32()
			}
		}
	}
	return out
}

// TestBFloat16: a model with bfloat16 matrices samples and trains, with a cache of either type. Its logprobs and its
// gradient are those of the CPU device with the same weights, except that here the activations are rounded too.
func TestBFloat16(t *testing.T) {
	for _, cache := range []dtypes.DType{dtypes.Float32, dtypes.BFloat16} {
		t.Run(cache.String(), func(t *testing.T) { testBFloat16(t, cache) })
	}
}

func testBFloat16(t *testing.T, cache dtypes.DType) {
	w := weights(t)["tiny"]
	on, a := device(t, configs[0]), adapter(t, w.Config)
	params, err := w.ParamsAs(on, dtypes.BFloat16)
	require.NoError(t, err)
	e, err := engine.New(engine.Options{
		Device: on, Config: w.Config, Params: params, Slots: 4, CacheType: cache, FewShapes: true, DecodeSteps: 16,
	})
	require.NoError(t, err)
	defer e.Close()
	loaded, err := e.NewAdapter(a)
	require.NoError(t, err)
	rng := rand.New(rand.NewPCG(seed, 9))
	var all []grpo.Sequence
	for i := range 6 {
		prompt := tokens(rng, w.Config, 8)
		r, err := e.Complete(context.Background(), engine.Request{
			Prompt: prompt, MaxTokens: 40, Seed: uint64(i), Adapter: loaded, Sampling: model.Sampling{Temperature: 1, TopP: 1},
		})
		require.NoError(t, err)
		all = append(all, sequence(prompt, r, i))
	}
	run := trainer.Run{
		Loss: grpo.PolicyLoss{Kind: grpo.PPO}, Optimizer: grpo.AdamW{Beta2: 0.99, Eps: 1e-8}, Rate: func(int) float64 { return 0 }, Epochs: 1, MiniBatches: 1,
	}
	got, report, err := trainer.New(trainer.AdapterTarget(w.Config, params, a),
		trainer.Options{Device: on, FewShapes: true}).
		Train(context.Background(), trainer.AdapterState(a), all, run)
	require.NoError(t, err)
	t.Logf("gap of sampler and trainer: at most %.2g, mean %.2g nats of %v tokens", report.Gap.Max, report.Gap.Mean(),
		report.Gap.Tokens)
	require.Less(t, report.Gap.Max, 0.1)

	onCPU, err := rounded(w).Params(graphtest.Device(t))
	require.NoError(t, err)
	want, report, err := trainer.New(trainer.AdapterTarget(w.Config, onCPU, a),
		trainer.Options{Device: graphtest.Device(t), FewShapes: true}).
		Train(context.Background(), trainer.AdapterState(a), all, run)
	require.NoError(t, err)
	t.Logf("logprobs differ from the CPU device's by %.2g, mean %.2g", report.Gap.Max, report.Gap.Mean())
	require.Less(t, report.Gap.Mean(), 0.02)
	most := 0.0
	for i, g := range want.M {
		most = max(most, norm(g, got.M[i])/norm(g, nil))
	}
	t.Logf("gradients differ by %.2g of their length", most)
	require.Less(t, most, 0.05)
}
