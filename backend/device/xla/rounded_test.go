//go:build cgo

package xla_test

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/gomlx/compute/dtypes"
	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art/grpo"
	"github.com/goart-dev/art/grpo/credit"
	"github.com/goart-dev/art/internal/engine"
	"github.com/goart-dev/art/internal/graphx/graphtest"
	"github.com/goart-dev/art/internal/sampling"
	"github.com/goart-dev/art/internal/trainer"
)

// TestRounded: a model with matrices of bfloat16 or int8 samples and trains, with a cache of either type. Its logprobs
// and its gradient are those of the CPU device with the same weights, except that here the activations are rounded too.
func TestRounded(t *testing.T) {
	for _, c := range []struct{ matrices, cache dtypes.DType }{
		{dtypes.BFloat16, dtypes.Float32}, {dtypes.BFloat16, dtypes.BFloat16}, {dtypes.Int8, dtypes.BFloat16},
	} {
		t.Run(c.matrices.String()+" with a cache of "+c.cache.String(), func(t *testing.T) {
			if testing.Short() && c.matrices == c.cache {
				t.Skip("compiles for ten seconds; the other two have both types of either")
			}
			testRounded(t, c.matrices, c.cache)
		})
	}
}

func testRounded(t *testing.T, matrices, cache dtypes.DType) {
	w := weights(t)["tiny"]
	on, a := device(t, configs[0]), adapter(t, w.Config)
	params, err := w.ParamsAs(on, matrices)
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
			Prompt: prompt, MaxTokens: 40, Seed: uint64(i), Adapter: loaded, Sampling: sampling.Settings{Temperature: 1, TopP: 1},
		})
		require.NoError(t, err)
		all = append(all, sequence(prompt, r, i))
	}
	run := trainer.Run{
		Loss: grpo.PolicyLoss{Loss: credit.PPO}, Optimizer: grpo.AdamW{Beta2: 0.99, Eps: 1e-8}, Rate: func(int) float64 { return 0 }, Epochs: 1, MiniBatches: 1,
	}
	got, report, err := trainer.New(trainer.AdapterTarget(w.Config, params, a),
		trainer.Options{Device: on, FewShapes: true}).
		Train(context.Background(), trainer.AdapterState(a), all, run)
	require.NoError(t, err)
	t.Logf("gap of sampler and trainer: at most %.2g, mean %.2g nats of %v tokens", report.Gap.Max, report.Gap.Mean(),
		report.Gap.Tokens)
	require.Less(t, report.Gap.Max, 0.2)
	require.Less(t, report.Gap.Mean(), 0.01)

	onCPU, err := w.Rounded(matrices).Params(graphtest.Device(t))
	require.NoError(t, err)
	want, report, err := trainer.New(trainer.AdapterTarget(w.Config, onCPU, a),
		trainer.Options{Device: graphtest.Device(t), FewShapes: true}).
		Train(context.Background(), trainer.AdapterState(a), all, run)
	require.NoError(t, err)
	t.Logf("logprobs differ from the CPU device's by %.2g, mean %.2g", report.Gap.Max, report.Gap.Mean())
	require.Less(t, report.Gap.Mean(), 0.02)
	whole, there := slices.Concat(want.M...), slices.Concat(got.M...)
	off := norm(whole, there) / norm(whole, nil)
	t.Logf("the gradient differs by %.2g of its length", off)
	require.Less(t, off, 0.05)
}
