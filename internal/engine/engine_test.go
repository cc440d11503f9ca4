package engine

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art/internal/graphx/graphtest"
	"github.com/goart-dev/art/internal/sampling"
	"github.com/goart-dev/art/lora"
	"github.com/goart-dev/art/model"
)

const testSeed = 7

// testConfig has grouped query attention and several layers.
func testConfig() *model.Config {
	return &model.Config{
		ModelType: "qwen3", HiddenAct: "silu", VocabSize: 301, HiddenSize: 61, IntermediateSize: 163,
		NumLayers: 2, NumHeads: 4, NumKVHeads: 2, HeadDim: 32, MaxPositions: 160, RMSNormEps: 1e-6,
		RopeTheta: 10000, TieEmbeddings: true,
	}
}

func testWeights(t testing.TB) *model.Weights {
	w, err := model.Random(testConfig(), testSeed)
	require.NoError(t, err)
	for i := range w.Tensors { // larger than usual initial weights, so that replies differ
		if len(w.Tensors[i].Shape) == 2 {
			for j := range w.Tensors[i].Data {
				w.Tensors[i].Data[j] *= 5
			}
		}
	}
	return w
}

func testEngine(t testing.TB, slots int) *Engine {
	device := graphtest.Device(t)
	params, err := testWeights(t).Params(device)
	require.NoError(t, err)
	e, err := New(Options{Device: device, Config: testConfig(), Params: params, Slots: slots})
	require.NoError(t, err)
	t.Cleanup(e.Close)
	return e
}

// testAdapter has random B, so that it changes the model.
func testAdapter(t testing.TB, rank int) *lora.Adapter {
	var shapes []lora.LayerShape
	for _, l := range testConfig().Linears() {
		shapes = append(shapes, lora.LayerShape(l))
	}
	a, err := lora.New(lora.Config{Rank: rank, Alpha: 16}, shapes, testSeed)
	require.NoError(t, err)
	rng := rand.New(rand.NewPCG(testSeed, 1))
	var data [][]float32
	for _, p := range a.Params() {
		for i := range p.Data {
			p.Data[i] += float32(rng.NormFloat64() * 0.05)
		}
		data = append(data, p.Data)
	}
	require.NoError(t, a.SetParams(data))
	return a
}

func onDevice(t testing.TB, a *lora.Adapter) *Adapter {
	device := graphtest.Device(t)
	ad, err := NewAdapter(device, nil, nil, a) // without DoRA it needs no weights
	require.NoError(t, err)
	return ad
}

func randomRequest(rng *rand.Rand, a *Adapter) Request {
	prompt := make([]int32, 1+rng.IntN(90))
	for i := range prompt {
		prompt[i] = int32(rng.IntN(300))
	}
	return Request{
		Prompt: prompt, End: []int32{5}, MaxTokens: 1 + rng.IntN(20), Seed: rng.Uint64(), Adapter: a,
		Sampling: sampling.Settings{
			Temperature: []float64{0, 1, 0.7}[rng.IntN(3)], TopP: []float64{1, 0.9}[rng.IntN(2)],
			TopK: []int{0, 40}[rng.IntN(2)],
		},
	}
}

// TestComplete_IndependentOfBatch compares each reply of a crowded engine with that of an engine which has the request
// alone.
func TestComplete_IndependentOfBatch(t *testing.T) {
	adapters := []*Adapter{nil, onDevice(t, testAdapter(t, 8))}
	rng := rand.New(rand.NewPCG(testSeed, 2))
	requests := make([]Request, 30)
	for i := range requests {
		requests[i] = randomRequest(rng, adapters[rng.IntN(2)])
	}
	crowded, got := testEngine(t, 7), make([]*Result, len(requests))
	var wg sync.WaitGroup
	for i := range requests {
		wg.Go(func() {
			var err error
			got[i], err = crowded.Complete(context.Background(), requests[i])
			require.NoError(t, err)
		})
	}
	wg.Wait()
	for i, r := range requests {
		alone, err := testEngine(t, 2).Complete(context.Background(), r)
		require.NoError(t, err)
		alone.Cached, got[i].Cached = 0, 0
		sameReply(t, alone, got[i], "request %d", i)
	}
}

// score computes the logprobs of the tokens after the prompt in one pass without a cache.
func score(t *testing.T, a *lora.Adapter, ids []int32, from int) []float32 {
	device := graphtest.Device(t)
	w := testWeights(t)
	params, err := w.Params(device)
	require.NoError(t, err)
	var in []any
	for _, x := range params.Tensors {
		in = append(in, x)
	}
	for _, p := range a.Params() {
		in = append(in, tensors.FromFlatDataAndDimensions(p.Data, p.Shape...))
	}
	padded := make([]int32, (len(ids)+31)/32*32)
	copy(padded, ids)
	in = append(in, tensors.FromFlatDataAndDimensions(padded, 1, len(padded)))
	n := len(params.Names)
	out, err := ExecOnce(device, func(in []*Node) *Node {
		f := &model.Forward{Config: w.Config, Param: params.Lookup(in[:n])}
		f.Linear, _ = a.Hooks(lora.Nodes{Trained: in[n : len(in)-1]})
		hidden, _ := f.Hidden(model.Input{Tokens: in[len(in)-1]})
		return f.LogProbs(Reshape(hidden, len(padded), -1))
	}, in...)
	require.NoError(t, err)
	all := tensors.MustCopyFlatData[float32](out)
	var lps []float32
	for i := from; i < len(ids); i++ {
		lps = append(lps, all[(i-1)*w.Config.VocabSize+int(ids[i])])
	}
	return lps
}

// TestComplete_MultiTurn follows a conversation: each turn reuses the cache of the previous one, and every logprob
// equals that of one pass over the whole conversation.
func TestComplete_MultiTurn(t *testing.T) {
	e, a := testEngine(t, 3), testAdapter(t, 32)
	on := onDevice(t, a)
	rng := rand.New(rand.NewPCG(testSeed, 3))
	ids := []int32{1, 2, 3, 4}
	for turn := range 5 {
		for range 11 {
			ids = append(ids, int32(rng.IntN(300)))
		}
		r, err := e.Complete(context.Background(), Request{
			Prompt: ids, MaxTokens: 6, Seed: uint64(turn), Adapter: on, Sampling: sampling.Settings{Temperature: 1, TopP: 1},
		})
		require.NoError(t, err)
		if turn > 0 {
			require.Equal(t, len(ids)-12, r.Cached, "all but the last reply token and the new ones")
		}
		whole := append(append([]int32(nil), ids...), r.IDs...)
		sameLogprobs(t, score(t, a, whole, len(ids)), r.Logprobs, "turn %d", turn)
		require.Nil(t, r.Sampled)
		ids = whole
	}
}

func TestComplete_Limits(t *testing.T) {
	e := testEngine(t, 2)
	ctx := context.Background()
	full := make([]int32, 158)
	r, err := e.Complete(ctx, Request{Prompt: full, Sampling: sampling.Settings{}})
	require.NoError(t, err)
	require.Len(t, r.IDs, 2, "the context has 160 tokens")
	require.Equal(t, Length, r.Reason)
	_, err = e.Complete(ctx, Request{Prompt: make([]int32, 160)})
	require.ErrorIs(t, err, ErrTooLong)
	_, err = e.Complete(ctx, Request{Prompt: []int32{304}})
	require.ErrorContains(t, err, "vocabulary")
	_, err = e.Complete(ctx, Request{})
	require.Error(t, err)
	first, err := e.Complete(ctx, Request{Prompt: []int32{9, 9}, MaxTokens: 3})
	require.NoError(t, err)
	ended, err := e.Complete(ctx, Request{Prompt: []int32{9, 9}, MaxTokens: 3, End: first.IDs[1:2]})
	require.NoError(t, err)
	require.Equal(t, End, ended.Reason)
	require.Equal(t, first.IDs[1], ended.IDs[len(ended.IDs)-1])
}

func TestComplete_Cancel(t *testing.T) {
	e := testEngine(t, 1)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := e.Complete(ctx, Request{Prompt: []int32{1}, MaxTokens: 100})
	require.ErrorIs(t, err, context.Canceled)
	_, err = e.Complete(context.Background(), Request{Prompt: []int32{1}, MaxTokens: 2})
	require.NoError(t, err, "a cancelled request leaves its slot")
	e.Close()
	_, err = e.Complete(context.Background(), Request{Prompt: []int32{1}})
	require.ErrorIs(t, err, ErrClosed)
}

func TestSample_Frequencies(t *testing.T) {
	lp := []float32{float32(math.Log(.5)), float32(math.Log(.3)), float32(math.Log(.2))}
	count := make([]int, 3)
	for i := range 20_000 {
		id, sampled := sampling.Sample(lp, sampling.Settings{Temperature: 1, TopP: 0.7}, testSeed, i)
		count[id]++
		require.InDelta(t, math.Log([]float64{.625, .375, 1}[id]), float64(sampled), 1e-6)
	}
	require.InDelta(t, .625, float64(count[0])/20_000, .02)
	require.Zero(t, count[2])
}

// TestComplete_LostCache: an engine whose cache is lost continues with an empty one.
func TestComplete_LostCache(t *testing.T) {
	rng := rand.New(rand.NewPCG(testSeed, 12))
	first, other := randomRequest(rng, nil), randomRequest(rng, nil)
	e := testEngine(t, 2)
	reply, err := e.Complete(context.Background(), first)
	require.NoError(t, err)
	next := first
	next.Prompt = slices.Concat(first.Prompt, reply.IDs, []int32{7})
	e.runner.cache.layers = nil // as after a failed graph
	again, err := e.Complete(context.Background(), next)
	require.NoError(t, err)
	require.Zero(t, again.Cached, "the cache is empty")
	branch := first // parts with the reply in the middle of a block
	branch.Prompt = slices.Concat(first.Prompt, reply.IDs[:1], []int32{8})
	for i, r := range []Request{first, other, next, branch} {
		if i == 3 {
			e.runner.cache.layers = nil
		}
		want, err := testEngine(t, 2).Complete(context.Background(), r)
		require.NoError(t, err)
		got, err := e.Complete(context.Background(), r)
		require.NoError(t, err)
		got.Cached, want.Cached = 0, 0
		sameReply(t, want, got, "request %d", i)
	}
}
