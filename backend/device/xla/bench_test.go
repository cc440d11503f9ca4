//go:build cgo

package xla_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art/grpo"
	"github.com/goart-dev/art/grpo/credit"
	"github.com/goart-dev/art/internal/engine"
	"github.com/goart-dev/art/internal/graphx"
	"github.com/goart-dev/art/internal/graphx/graphtest"
	"github.com/goart-dev/art/internal/sampling"
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
		ModelType: "qwen3", HiddenAct: "silu", VocabSize: 32768, HiddenSize: 1024, IntermediateSize: 3072,
		NumLayers: 4, NumHeads: 16, NumKVHeads: 8, HeadDim: 128, MaxPositions: 4096,
		RMSNormEps: 1e-6, RopeTheta: 1e6, TieEmbeddings: true,
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

// measure calls f once to compile, then those of compiled, and then reports tokens a second.
func measure(b *testing.B, tokens int, f func(), compiled ...func()) {
	start := time.Now()
	f()
	first := time.Since(start)
	for _, f := range compiled {
		f()
	}
	b.ResetTimer()
	for range b.N {
		f()
	}
	b.ReportMetric(float64(tokens*b.N)/b.Elapsed().Seconds(), "tokens/s")
	b.ReportMetric(first.Seconds(), "s-first")
}

// BenchmarkHost is how long the device waits for the host: the part of the time of decoding many tokens per call, and
// of a training step, in which no program runs, and that time for each call. It is what asynchronous calls could save.
func BenchmarkHost(b *testing.B) {
	large, err := wideWeights()
	require.NoError(b, err)
	for name, w := range map[string]*model.Weights{"tiny": weights(b)["tiny"], "wide": large} {
		run := func(what string, bench func(b *testing.B, on compute.Backend, compiled func())) {
			b.Run(fmt.Sprintf("%s/model=%s", what, name), func(b *testing.B) {
				var u use
				bench(b, graphtest.HookedOn(device(b, configs[0]), graphtest.Hooks{Run: u.begin, Ran: u.end}), u.reset)
				idle := b.Elapsed() - u.busy
				b.ReportMetric(100*idle.Seconds()/b.Elapsed().Seconds(), "host-%")
				b.ReportMetric(1e6*idle.Seconds()/float64(u.calls), "host-us/call")
			})
		}
		for _, batch := range []int{1, 16} {
			run(fmt.Sprintf("decode=%d", batch), func(b *testing.B, on compute.Backend, compiled func()) {
				decode(b, on, w, decoding{batch: batch, steps: 32, sampling: sampling.Settings{Temperature: 1, TopP: 1}}, compiled)
			})
		}
		run("train", func(b *testing.B, on compute.Backend, compiled func()) {
			train(b, on, w, adapter(b, w.Config), replies{rows: 8, prompt: 1, length: 192}, compiled)
		})
	}
}

// use is the time in which one program runs, or several at once.
type use struct {
	mu             sync.Mutex
	running, calls int
	since          time.Time
	busy           time.Duration
}

func (u *use) begin() error {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.running == 0 {
		u.since = time.Now()
	}
	u.running++
	u.calls++
	return nil
}

func (u *use) end() {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.running--; u.running == 0 {
		u.busy += time.Since(u.since)
	}
}

func (u *use) reset() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.calls, u.busy = 0, 0
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

// BenchmarkPrompts is 8 prompts of 250 tokens at once in an engine as [local.Open] makes it, which attend to
// themselves alone, or go on from a cached beginning of 32 tokens.
func BenchmarkPrompts(b *testing.B) {
	const requests, length, shared = 8, 250, 32
	w, err := wideWeights()
	require.NoError(b, err)
	on := device(b, configs[0])
	params, err := w.Params(on)
	require.NoError(b, err)
	e, err := engine.New(engine.Options{
		Device: on, Config: w.Config, Params: params, Slots: requests, Context: 2048, FewShapes: true, DecodeSteps: 32,
	})
	require.NoError(b, err)
	defer e.Close()
	for _, cached := range []bool{false, true} {
		rng := rand.New(rand.NewPCG(seed, 6))
		begin := tokens(rng, w.Config, shared)
		b.Run(fmt.Sprintf("cached=%v", cached), func(b *testing.B) {
			measure(b, requests*length, func() {
				list := make([]engine.Request, requests)
				for i := range list {
					list[i] = engine.Request{Prompt: tokens(rng, w.Config, length), MaxTokens: 1}
					if cached {
						list[i].Prompt = append(slices.Clone(begin), list[i].Prompt...)
					}
				}
				complete(b, e, list)
			})
		})
	}
}

func BenchmarkDecode(b *testing.B) {
	for _, batch := range []int{1, 16} {
		b.Run(fmt.Sprintf("batch=%d", batch), func(b *testing.B) {
			each(b, func(b *testing.B, on compute.Backend, w *model.Weights, _ *lora.Adapter) {
				decode(b, on, w, decoding{batch: batch, steps: 1})
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
					sampling := sampling.Settings{Temperature: 1, TopP: topP}
					decode(b, device(b, configs[0]), w, decoding{batch: batch, steps: 32, sampling: sampling})
				})
			}
		}
	}
}

// BenchmarkContext is BenchmarkLoop with a prompt that the sequences share.
func BenchmarkContext(b *testing.B) {
	w, err := wideWeights()
	require.NoError(b, err)
	for _, prompt := range []int{900, 1900, 3900} {
		b.Run(fmt.Sprintf("prompt=%d", prompt), func(b *testing.B) {
			decode(b, device(b, configs[0]), w, decoding{
				batch: 16, steps: 32, sampling: sampling.Settings{Temperature: 1, TopP: 1}, prompt: prompt,
			})
		})
	}
}

// BenchmarkLone is one request in an engine for 16.
func BenchmarkLone(b *testing.B) {
	w, err := wideWeights()
	require.NoError(b, err)
	decode(b, device(b, configs[0]), w, decoding{
		batch: 1, slots: 16, steps: 32, sampling: sampling.Settings{Temperature: 1, TopP: 1},
	})
}

// decoding is of batch sequences at once, and of steps tokens per call, after a prompt of which all but the last token
// is shared.
type decoding struct {
	batch, steps int
	slots        int // 0: batch
	sampling     sampling.Settings
	prompt       int
}

// decode makes 50 tokens of each sequence.
func decode(b *testing.B, on compute.Backend, w *model.Weights, d decoding, compiled ...func()) {
	const length = 50
	params, err := w.Params(on)
	require.NoError(b, err)
	shared := tokens(rand.New(rand.NewPCG(seed, 9)), w.Config, d.prompt)
	e, err := engine.New(engine.Options{
		Device: on, Config: w.Config, Params: params, Slots: max(d.slots, d.batch), Context: max(512, d.prompt+148),
		FewShapes: graphx.ProfileOf(on).SlowCompile, DecodeSteps: d.steps,
	})
	require.NoError(b, err)
	defer e.Close()
	loaded, err := e.NewAdapter(adapter(b, w.Config))
	require.NoError(b, err)
	requests := make([]engine.Request, d.batch)
	for i := range requests {
		requests[i] = engine.Request{
			Prompt: append(slices.Clone(shared), int32(i)), MaxTokens: length, Adapter: loaded, Sampling: d.sampling,
		}
	}
	measure(b, d.batch*length, func() { complete(b, e, requests) }, compiled...)
}

func BenchmarkTrain(b *testing.B) {
	each(b, func(b *testing.B, on compute.Backend, w *model.Weights, a *lora.Adapter) {
		train(b, on, w, a, replies{rows: 8, prompt: 1, length: 192})
	})
}

// BenchmarkGroup is a step of 8 replies of 128 tokens to one prompt of 384: computed once, or for each of them.
func BenchmarkGroup(b *testing.B) {
	w, err := wideWeights()
	require.NoError(b, err)
	for _, alone := range []bool{false, true} {
		b.Run(fmt.Sprintf("alone=%v", alone), func(b *testing.B) {
			train(b, device(b, configs[0]), w, adapter(b, w.Config),
				replies{rows: 8, prompt: 384, length: 512, alone: alone})
		})
	}
}

// replies are so many sequences of a length that begin with one prompt.
type replies struct {
	rows, prompt, length int
	alone                bool // trainer.Options.Alone
}

// train makes steps of replies.
func train(b *testing.B, on compute.Backend, w *model.Weights, a *lora.Adapter, r replies, compiled ...func()) {
	params, err := w.Params(on)
	require.NoError(b, err)
	teacher := trainer.New(trainer.AdapterTarget(w.Config, params, a),
		trainer.Options{Device: on, FewShapes: graphx.ProfileOf(on).SlowCompile, Alone: r.alone})
	state := trainer.AdapterState(a)
	prompt := tokens(rand.New(rand.NewPCG(seed, 9)), w.Config, r.prompt)
	all := make([]grpo.Sequence, r.rows)
	for i := range all {
		n := r.length + 1 - r.prompt
		ids := tokens(rand.New(rand.NewPCG(seed, uint64(i))), w.Config, n)
		all[i] = sequence(prompt, &engine.Result{IDs: ids, Logprobs: make([]float32, n)}, i)
	}
	measure(b, r.rows*r.length, func() {
		_, _, err := teacher.Train(context.Background(), state, all, trainer.Run{
			Loss: grpo.PolicyLoss{Loss: credit.PPO}, Optimizer: grpo.DefaultAdamW(),
			Rate: func(int) float64 { return 1e-4 }, Epochs: 1, MiniBatches: 1,
		})
		require.NoError(b, err)
	}, compiled...)
}

// BenchmarkMatmuls is the matmuls with weights of a step of BenchmarkDecode without the rest of it.
func BenchmarkMatmuls(b *testing.B) {
	for _, batch := range []int{1, 16} {
		b.Run(fmt.Sprintf("batch=%d", batch), func(b *testing.B) {
			each(b, func(b *testing.B, on compute.Backend, w *model.Weights, _ *lora.Adapter) {
				matmuls(b, on, w.Config, batch)
			})
		})
	}
}

// matmuls multiplies so many rows of random numbers by each of a model's matrices.
func matmuls(b *testing.B, on compute.Backend, c *model.Config, rows int) {
	random := func(dst []float32, first int) { // several at once
		rng := rand.New(rand.NewPCG(seed, uint64(first)))
		for i := range dst {
			dst[i] = rng.Float32() - 0.5
		}
	}
	matrix := func(in, out int) *tensors.Tensor {
		t, err := graphx.UploadMatrix(on, dtypes.Float32, in, out, random)
		require.NoError(b, err)
		return t
	}
	var inputs []any
	at := map[int]int{} // of the input whose rows have so many numbers
	for _, l := range c.Linears() {
		if _, ok := at[l.In]; !ok {
			at[l.In] = len(inputs)
			x := make([]float32, rows*l.In)
			random(x, 0)
			t, err := graphx.Upload(on, x, rows, l.In)
			require.NoError(b, err)
			inputs = append(inputs, t)
		}
	}
	first := len(inputs)
	for _, l := range c.Linears() {
		inputs = append(inputs, matrix(l.In, l.Out))
	}
	inputs = append(inputs, matrix(c.VocabSize, c.HiddenSize))
	programs := graphx.NewPrograms(on, 0)
	measure(b, rows, func() {
		out, err := programs.Call("matmuls", func(in []*graph.Node) (products []*graph.Node) {
			for i, l := range c.Linears() {
				products = append(products, graph.MatMul(in[at[l.In]], in[first+i]))
			}
			return append(products, graphx.MatMulTransposed(in[at[c.HiddenSize]], in[len(in)-1]))
		}, inputs)
		require.NoError(b, err)
		for _, t := range out {
			t.MustFinalizeAll()
		}
	})
}
