package engine

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/gomlx/compute"
	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art/internal/graphx/graphtest"
	"github.com/goart-dev/art/internal/sampling"
	"github.com/goart-dev/art/model"
	"github.com/goart-dev/art/model/tiny"
)

// These tests unroll the loop: the CPU device has no loops, and GoMLX's Go device modifies the closures of a loop after
// it has compiled them. Loops are tested with XLA.

// decodeEngine returns an engine that decodes some tokens per call.
func decodeEngine(t testing.TB, device compute.Backend, steps, slots int) *Engine {
	params, err := testWeights(t).Params(device)
	require.NoError(t, err)
	e, err := New(Options{
		Device: device, Config: testConfig(), Params: params, Slots: slots, FewShapes: steps > 1, DecodeSteps: steps,
		unroll: !graphtest.HasLoops(),
	})
	require.NoError(t, err)
	t.Cleanup(e.Close)
	return e
}

// all sends concurrent requests.
func all(t testing.TB, e *Engine, requests []Request) []*Result {
	got := make([]*Result, len(requests))
	var wg sync.WaitGroup
	for i, r := range requests {
		wg.Go(func() {
			var err error
			got[i], err = e.Complete(context.Background(), r)
			require.NoError(t, err)
			got[i].Cached = 0 // depends on timing
		})
	}
	wg.Wait()
	return got
}

// likeSteps compares replies of many tokens per call with those of single steps: equal ids, and logprobs within
// rounding.
func likeSteps(t testing.TB, want, got []*Result, rounding float64) {
	rounding = max(rounding, graphtest.Rounding())
	for i := range want {
		require.Equal(t, want[i].IDs, got[i].IDs, "reply %d, seed %d", i, testSeed)
		require.Equal(t, want[i].Reason, got[i].Reason)
		require.InDeltaSlice(t, want[i].Logprobs, got[i].Logprobs, rounding)
		require.Equal(t, want[i].Sampled == nil, got[i].Sampled == nil)
		if want[i].Sampled != nil {
			// Low temperatures amplify the differences.
			require.InDeltaSlice(t, want[i].Sampled, got[i].Sampled, 1e-6+10*rounding)
		}
	}
}

// decodeRequests returns requests with all kinds of lengths and ends.
func decodeRequests(rng *rand.Rand, n int, adapters []*Adapter) []Request {
	list := make([]Request, n)
	for i := range list {
		list[i] = randomRequest(rng, adapters[rng.IntN(len(adapters))])
		list[i].MaxTokens = 1 + rng.IntN(30)
	}
	for range 20 { // more than the device looks for: the host finds some
		list[0].End = append(list[0].End, int32(rng.IntN(300)))
	}
	list[1].Prompt, list[1].MaxTokens = make([]int32, 150), 0 // to the end of the context
	list[2].Prompt = make([]int32, 159)                       // a single token fits
	list[3].MaxTokens = 1
	return list
}

// TestDecode_LikeSteps: many tokens per call give the tokens of single steps, and the same logprobs bit for bit,
// whatever the lengths, the end ids and the other requests.
func TestDecode_LikeSteps(t *testing.T) {
	device := graphtest.Device(t)
	adapters := []*Adapter{nil, onDevice(t, testAdapter(t, 8)), onDevice(t, testAdapter(t, 3))}
	requests := decodeRequests(rand.New(rand.NewPCG(testSeed, 21)), 24, adapters)
	for i := range requests {
		requests[i].Sampling.TopK, requests[i].Sampling.TopP = 0, 1
	}
	want := all(t, decodeEngine(t, device, 1, 5), requests)
	require.Len(t, want[1].IDs, 10)
	require.Len(t, want[2].IDs, 1)
	require.Len(t, want[3].IDs, 1)
	for _, steps := range []int{2, 9} {
		likeSteps(t, want, all(t, decodeEngine(t, device, steps, 5), requests), 0)
	}
}

// TestDecode_Truncated: the same with top-k and top-p, for which the CPU device lacks operations, and with loops over
// rows, and over blocks where rows would take more memory than the cache.
func TestDecode_Truncated(t *testing.T) {
	device := graphtest.Complete(t)
	requests := decodeRequests(rand.New(rand.NewPCG(testSeed, 22)), 8, []*Adapter{nil})
	want := all(t, decodeEngine(t, device, 1, 8), requests)
	params, err := testWeights(t).Params(device)
	require.NoError(t, err)
	for _, tokens := range []int{8 * 160, 160} {
		e, err := New(Options{
			Device: device, Config: testConfig(), Params: params, Slots: 8, CacheTokens: tokens, FewShapes: true,
			DecodeSteps: 7, unroll: !graphtest.HasLoops(),
		})
		require.NoError(t, err)
		t.Cleanup(e.Close)
		require.Equal(t, tokens > 160, copiesRows(e.opts, Program{Rows: 8, Window: 160}))
		likeSteps(t, want, all(t, e, requests), 1e-4)
	}
}

// TestDecode_Stopper: a stopper ends a reply at the same token with one token per call and with many, and the next turn
// of the conversation does not see the tokens that the device decoded beyond it.
func TestDecode_Stopper(t *testing.T) {
	device := graphtest.Device(t)
	w, err := tiny.Load()
	require.NoError(t, err)
	params, err := w.Params(device)
	require.NoError(t, err)
	open := func(steps int) *Engine {
		e, err := New(Options{
			Device: device, Config: w.Config, Params: params, Slots: 1, Context: 128, DecodeSteps: steps, unroll: !graphtest.HasLoops(),
		})
		require.NoError(t, err)
		t.Cleanup(e.Close)
		return e
	}
	steps, loop := open(1), open(20)
	ask := func(r Request) *Result {
		want, err := steps.Complete(context.Background(), r)
		require.NoError(t, err)
		got, err := loop.Complete(context.Background(), r)
		require.NoError(t, err)
		likeSteps(t, []*Result{want}, []*Result{got}, 0)
		require.Equal(t, want.Cached, got.Cached)
		return got
	}
	first := Request{
		Prompt: []int32{40, 41, 42}, MaxTokens: 24, Seed: 5, Sampling: sampling.Settings{Temperature: 1.3, TopP: 1},
	}
	whole := ask(first)
	first.Stop = StopText(func(id int32) (string, bool) { return "", id == whole.IDs[4] })
	stopped := ask(first)
	require.Equal(t, Stopped, stopped.Reason)
	require.Equal(t, whole.IDs[4], stopped.IDs[len(stopped.IDs)-1])
	require.Less(t, len(stopped.IDs), 20, "a call makes more than the reply has")
	next := first
	next.Stop, next.Prompt = nil, slices.Concat(first.Prompt, stopped.IDs, []int32{50, 51})
	require.Positive(t, ask(next).Cached, "the conversation goes on in its slot")
}

// TestDecode_BoundedCompilations: each graph is one that Programs lists, for each kind of adapter, one that stores for
// each window where loops read rows, or one of two that clear the cache and copy a block.
func TestDecode_BoundedCompilations(t *testing.T) {
	device, compiled := graphtest.Counting(t)
	w := testWeights(t)
	w.Config.MaxPositions = 600
	params, err := w.Params(device)
	require.NoError(t, err)
	e, err := New(Options{
		Device: device, Config: w.Config, Params: params, Slots: 2, FewShapes: true, DecodeSteps: 4, unroll: !graphtest.HasLoops(),
	})
	require.NoError(t, err)
	defer e.Close()
	adapter, err := e.NewAdapter(testAdapter(t, 4))
	require.NoError(t, err)
	ask := func(seed uint64) {
		rng := rand.New(rand.NewPCG(testSeed, seed))
		for length := 1; length < 590; length += 45 {
			prompt := make([]int32, length)
			for i := range prompt {
				prompt[i] = int32(rng.IntN(300))
			}
			_, err := e.Complete(context.Background(), Request{
				Prompt: prompt, End: prompt[:min(length, rng.IntN(20))],
				MaxTokens: 1 + length%9, Adapter: []*Adapter{nil, adapter}[(seed+uint64(length))%2],
				Sampling: sampling.Settings{Temperature: rng.Float64(), TopP: 1},
			})
			require.NoError(t, err)
		}
	}
	ask(1)
	ask(2)
	all := compiled.Load()
	const kinds = 2
	windows := len(Options{Context: 600}.shapes().DecodeWindows)
	t.Logf("%d graphs for %d widths, %d windows and %d kinds of adapters", all, len(e.runner.shapes.Widths),
		windows, kinds)
	listed := 0
	for _, p := range Programs(e.opts) {
		if p.Cuts == (sampling.Cuts{}) {
			listed++
		}
	}
	require.LessOrEqual(t, all, int64(kinds*listed+windows+2))
	ask(1)
	require.Equal(t, all, compiled.Load(), "what was compiled is used again")
}

func TestDecode_NeedsLoops(t *testing.T) {
	_, err := New(Options{Device: graphtest.CPU(t), Config: testConfig(), Slots: 1, DecodeSteps: 4})
	require.ErrorContains(t, err, "no loops")
	_, err = New(Options{Device: graphtest.Reference(t), Config: testConfig(), Slots: 1, DecodeSteps: -1})
	require.ErrorContains(t, err, "at least 1")
}

// TestWindows_OfRounds: rounds of one token have the windows of decoding where a device takes long to compile.
func TestWindows_OfRounds(t *testing.T) {
	s := Options{Context: 1000}.shapes()
	require.Equal(t, s.DecodeWindows, windowsOf(s, true, 1))
	require.Equal(t, s.Windows, windowsOf(s, true, 16))
	require.Equal(t, s.Windows, windowsOf(s, false, 1))
	require.NotEqual(t, s.Windows, s.DecodeWindows)
}

// TestWindows_Replies: replies that go from one window to the next, of several sizes, are those of one window that has
// room for all of them.
func TestWindows_Replies(t *testing.T) {
	device := graphtest.Complete(t)
	config := *testConfig()
	config.MaxPositions = 640
	w, err := model.Random(&config, 4)
	require.NoError(t, err)
	params, err := w.Params(device)
	require.NoError(t, err)
	var requests []Request
	rng := rand.New(rand.NewPCG(testSeed, 99))
	for i, length := range []int{1, 100, 120, 250} {
		r := Request{MaxTokens: 40, Seed: uint64(i), Sampling: sampling.Settings{Temperature: 1, TopP: 1}}
		for range length {
			r.Prompt = append(r.Prompt, int32(rng.IntN(config.VocabSize)))
		}
		requests = append(requests, r)
	}
	ask := func(few bool, steps int) []*Result {
		return all(t, started(t, Options{
			Device: device, Config: &config, Params: params, Slots: 4, FewShapes: few, DecodeSteps: steps,
			unroll: !graphtest.HasLoops(),
		}), requests)
	}
	want := ask(false, 1)
	likeSteps(t, want, ask(true, 1), 1e-4)
	likeSteps(t, want, ask(true, 4), 1e-4)
}
