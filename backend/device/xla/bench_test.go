//go:build cgo

package xla_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/gomlx/compute"
	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art/grpo"
	"github.com/goart-dev/art/internal/engine"
	"github.com/goart-dev/art/internal/graphx/graphtest"
	"github.com/goart-dev/art/internal/trainer"
	"github.com/goart-dev/art/lora"
	"github.com/goart-dev/art/model"
)

// Speed of whole passes on the CPU device and on XLA, of two models: the built-in one, and four layers of Qwen3-0.6B
// with a fifth of its vocabulary. Each reports the time of the first call too, which compiles.
//
//	go test ./backend/device/xla -run '^$' -bench . -benchtime 3x

// wide is four layers of Qwen3-0.6B.
func wide() *model.Config {
	return &model.Config{
		ModelType: model.ModelTypeQwen3, HiddenAct: "silu", VocabSize: 32768, HiddenSize: 1024, IntermediateSize: 3072,
		NumLayers: 4, NumHeads: 16, NumKVHeads: 8, HeadDim: 128, MaxPositions: 512, RMSNormEps: 1e-6, RopeTheta: 1e6, TieEmbeddings: true,
	}
}

var wideWeights = sync.OnceValues(func() (*model.Weights, error) { return model.Random(wide(), seed) })

// each runs a benchmark for both models and devices.
func each(b *testing.B, bench func(b *testing.B, on compute.Backend, w *model.Weights, a *lora.Adapter)) {
	large, err := wideWeights()
	require.NoError(b, err)
	for _, m := range []struct {
		name string
		w    *model.Weights
	}{{"tiny", weights(b)["tiny"]}, {"wide", large}} {
		b.Run("model="+m.name+"/device=cpu",
			func(b *testing.B) { bench(b, graphtest.Device(b), m.w, adapter(b, m.w.Config)) })
		b.Run("model="+m.name+"/device=xla",
			func(b *testing.B) { bench(b, device(b, configs[0]), m.w, adapter(b, m.w.Config)) })
	}
}

// measure calls f once to compile, and then reports tokens a second.
func measure(b *testing.B, tokens int, f func()) {
	start := time.Now()
	f()
	first := time.Since(start)
	b.ResetTimer()
	for range b.N {
		f()
	}
	b.ReportMetric(float64(tokens*b.N)/b.Elapsed().Seconds(), "tokens/s")
	b.ReportMetric(first.Seconds(), "s-first")
}

// complete sends all requests at once.
func complete(b *testing.B, e *engine.Engine, requests []engine.Request) {
	var wg sync.WaitGroup
	for _, r := range requests {
		wg.Go(func() {
			_, err := e.Complete(context.Background(), r)
			require.NoError(b, err)
		})
	}
	wg.Wait()
}

func BenchmarkPrefill(b *testing.B) {
	const length = 200
	each(b, func(b *testing.B, on compute.Backend, w *model.Weights, a *lora.Adapter) {
		e, loaded := sampler(b, on, w, a, 1)
		rng := rand.New(rand.NewPCG(seed, 6))
		measure(b, length, func() {
			complete(b, e, []engine.Request{{Prompt: tokens(rng, w.Config, length), MaxTokens: 1, Adapter: loaded}})
		})
	})
}

func BenchmarkDecode(b *testing.B) {
	for _, batch := range []int{1, 16} {
		b.Run(fmt.Sprintf("batch=%d", batch), func(b *testing.B) {
			each(b, func(b *testing.B, on compute.Backend, w *model.Weights, _ *lora.Adapter) {
				decode(b, on, w, batch, 1, model.Sampling{})
			})
		})
	}
}

// BenchmarkLoop is BenchmarkDecode with many tokens per call, sampled from the whole distribution and with top-p.
func BenchmarkLoop(b *testing.B) {
	large, err := wideWeights()
	require.NoError(b, err)
	for name, w := range map[string]*model.Weights{"tiny": weights(b)["tiny"], "wide": large} {
		for _, batch := range []int{1, 16} {
			for _, topP := range []float64{1, 0.9} {
				b.Run(fmt.Sprintf("batch=%d/model=%s/topP=%v", batch, name, topP), func(b *testing.B) {
					decode(b, device(b, configs[0]), w, batch, 32, model.Sampling{Temperature: 1, TopP: topP})
				})
			}
		}
	}
}

// decode makes 50 tokens of each of some sequences.
func decode(
	b *testing.B, on compute.Backend, w *model.Weights, batch, steps int, sampling model.Sampling,
) {
	const length = 50
	params, err := w.Params(on)
	require.NoError(b, err)
	e, err := engine.New(engine.Options{
		Device: on, Config: w.Config, Params: params, Slots: batch, FewShapes: steps > 1, DecodeSteps: steps,
	})
	require.NoError(b, err)
	defer e.Close()
	loaded, err := e.NewAdapter(adapter(b, w.Config))
	require.NoError(b, err)
	requests := make([]engine.Request, batch)
	for i := range requests {
		requests[i] = engine.Request{Prompt: []int32{int32(i)}, MaxTokens: length, Adapter: loaded, Sampling: sampling}
	}
	measure(b, batch*length, func() { complete(b, e, requests) })
}

func BenchmarkTrain(b *testing.B) {
	const rows, length = 8, 193
	each(b, func(b *testing.B, on compute.Backend, w *model.Weights, a *lora.Adapter) {
		params, err := w.Params(on)
		require.NoError(b, err)
		teacher, state := trainer.New(trainer.AdapterTarget(w.Config, params, a), trainer.Options{Device: on}),
			trainer.AdapterState(a)
		all := make([]grpo.Sequence, rows)
		for i := range all {
			ids := tokens(rand.New(rand.NewPCG(seed, uint64(i))), w.Config, length)
			all[i] = sequence(ids[:1], &engine.Result{IDs: ids[1:], Logprobs: make([]float32, length-1)}, i)
		}
		measure(b, rows*(length-1), func() {
			_, _, err := teacher.Train(context.Background(), state, all, trainer.Run{
				Loss: grpo.PolicyLoss{Kind: grpo.PPO}, Optimizer: grpo.DefaultAdamW(), Rate: func(int) float64 { return 1e-4 }, Epochs: 1, MiniBatches: 1,
			})
			require.NoError(b, err)
		})
	})
}
