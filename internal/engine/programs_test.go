package engine

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art/internal/graphx/graphtest"
	"github.com/goart-dev/art/internal/sampling"
)

// TestWarm_CompilesAll: after it, requests of all lengths compile nothing, of the base model and of adapters with the
// layout that was warmed; and it compiles the programs that are listed, and no others.
func TestWarm_CompilesAll(t *testing.T) {
	device, compiled := graphtest.Counting(t)
	params, err := testWeights(t).Params(device)
	require.NoError(t, err)
	opts := Options{Device: device, Config: testConfig(), Params: params, Slots: 12, Context: 100}
	e, err := New(opts)
	require.NoError(t, err)
	defer e.Close()
	var adapters []*Adapter
	for range 2 { // of one layout
		a, err := e.NewAdapter(testAdapter(t, 8))
		require.NoError(t, err)
		adapters = append(adapters, a)
	}
	before := compiled.Load()
	require.NoError(t, e.Warm(t.Context(), nil))
	require.NoError(t, e.Warm(t.Context(), adapters[0]))
	list := Programs(opts)
	require.Equal(t, int64(2*len(list)), compiled.Load()-before, "%+v", list)
	require.NoError(t, e.Warm(t.Context(), adapters[1]))

	var wg sync.WaitGroup
	for i := range uint64(24) {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(testSeed, 95+i))
			for range 40 {
				prompt := make([]int32, 1+rng.IntN(1+rng.IntN(90)))
				for i := range prompt {
					prompt[i] = int32(rng.IntN(300))
				}
				_, err := e.Complete(t.Context(), Request{
					Prompt: prompt, MaxTokens: 1 + rng.IntN(6), Adapter: []*Adapter{nil, adapters[0], adapters[1]}[rng.IntN(3)],
					Sampling: sampling.Settings{Temperature: 1, TopP: 1},
				})
				assert.NoError(t, err)
			}
		})
	}
	wg.Wait()
	require.LessOrEqual(t, compiled.Load()-before, int64(2*len(list)+1), "one that copies a block of the cache")
}

// TestPrograms_FewLayouts: on a device that takes long to compile, adapters of more layouts than keep their programs
// leave no more programs than are documented, those of the layouts that were used last, and replies are those of an
// engine that keeps all.
func TestPrograms_FewLayouts(t *testing.T) {
	device, compiled := graphtest.CountingOn(graphtest.NamedOn(graphtest.CPU(t), "xla:cuda"))
	params, err := testWeights(t).Params(device)
	require.NoError(t, err)
	opts := Options{Device: device, Config: testConfig(), Params: params, Slots: 2, Context: 100, FewShapes: true}
	e := started(t, opts)
	opts.ProgramBytes = math.MaxInt64
	all := started(t, opts)
	most := MostPrograms(opts)
	use := func(e *Engine, rank int) *Result {
		a, err := e.NewAdapter(testAdapter(t, rank))
		require.NoError(t, err)
		require.NoError(t, e.Warm(t.Context(), a))
		r, err := e.Complete(t.Context(), Request{
			Prompt: []int32{1, 2, int32(rank)}, MaxTokens: 3, Adapter: a, Sampling: sampling.Settings{TopP: 1},
		})
		require.NoError(t, err)
		return r
	}
	require.NoError(t, e.Warm(t.Context(), nil))
	for rank := 1; rank <= 2*KeptLayouts; rank++ {
		require.Equal(t, use(all, rank), use(e, rank))
		require.LessOrEqual(t, e.runner.programs.Len(), most)
	}
	require.Greater(t, all.runner.programs.Len(), most)
	before := compiled.Load()
	for rank := KeptLayouts + 1; rank <= 2*KeptLayouts; rank++ {
		use(e, rank)
	}
	require.Equal(t, before, compiled.Load(), "the last layouts are kept")
	require.Equal(t, use(all, 1), use(e, 1))
	require.Equal(t, before+int64(len(Programs(opts))), compiled.Load(), "the first one is compiled again")
}

// started is an engine until the test ends.
func started(t testing.TB, opts Options) *Engine {
	t.Helper()
	e, err := New(opts)
	require.NoError(t, err)
	t.Cleanup(e.Close)
	return e
}

// TestPrograms_Decode: a device that decodes many tokens a call has programs for that, with and without top-k and
// top-p.
func TestPrograms_Decode(t *testing.T) {
	opts := Options{Config: testConfig(), Slots: 8, Context: 160, FewShapes: true}
	few := Programs(opts)
	for _, p := range few {
		require.Equal(t, PromptProgram, p.Kind)
		require.Contains(t, []int{1, 8}, p.Rows)
	}
	opts.DecodeSteps = 32
	more := Programs(opts)[len(few):]
	require.Len(t, more, 8)
	seen := map[Program]bool{}
	for _, p := range more {
		seen[p] = true
		p.Cuts = sampling.Cuts{}
		require.Contains(t, []int{1, 8}, p.Rows)
		require.Equal(t, Program{Kind: DecodeProgram, Rows: p.Rows, Width: 32, Window: 160}, p)
	}
	require.Len(t, seen, 8, "one row and all, with and without top-p and top-k")
}

// TestWarm_ChangesNothing: replies are the same with a warm-up between the turns of a conversation, beside requests.
func TestWarm_ChangesNothing(t *testing.T) {
	requests := decodeRequests(rand.New(rand.NewPCG(testSeed, 96)), 8, []*Adapter{nil})
	want := all(t, testEngine(t, 3), requests)
	e := testEngine(t, 3)
	var wg sync.WaitGroup
	wg.Go(func() { require.NoError(t, e.Warm(t.Context(), nil)) })
	got := all(t, e, requests)
	wg.Wait()
	sameReplies(t, want, got)
	sameReplies(t, want, all(t, e, requests)) // with what is cached
}

// TestWarm_Ends: with its context, with the engine, and with an error of the device, after which requests are answered.
func TestWarm_Ends(t *testing.T) {
	e := testEngine(t, 1)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, e.Warm(ctx, nil), context.Canceled)
	e.Close()
	require.ErrorIs(t, e.Warm(t.Context(), nil), ErrClosed)

	broken := errors.New("broken")
	var fails atomic.Bool
	device := graphtest.Hooked(t, graphtest.Hooks{Run: func() error {
		if fails.Swap(false) {
			return broken
		}
		return nil
	}})
	e = decodeEngine(t, device, 1, 2)
	fails.Store(true)
	require.ErrorIs(t, e.Warm(t.Context(), nil), broken)
	_, err := e.Complete(t.Context(), Request{Prompt: []int32{1, 2}, MaxTokens: 3, Sampling: sampling.Settings{TopP: 1}})
	require.NoError(t, err)
}

// TestRounds_FromTheBeginning: on a device that would copy what is cached, prompts attend to their own tokens where
// they begin with the first, and to cached ones where not. TestDecode_LikeSteps compares what both compute.
func TestRounds_FromTheBeginning(t *testing.T) {
	e := decodeEngine(t, graphtest.Device(t), 2, 2)
	prompt := make([]int32, 100)
	ask := func(n int) {
		_, err := e.Complete(t.Context(), Request{Prompt: prompt[:n], MaxTokens: 1, Sampling: sampling.Settings{TopP: 1}})
		require.NoError(t, err)
	}
	kept := func() int { return e.runner.programs.Len() }
	ask(64)
	before := kept()
	p := Program{Kind: PromptProgram, Rows: e.runner.shapes.Heights.Fit(1), Width: 64}
	require.NoError(t, e.do(t.Context(), func(l *loop) error { return l.runner.warm(nil, p) }))
	require.Equal(t, before, kept(), "the prompt has used the program without a window")
	ask(80)
	require.Greater(t, kept(), before, "what follows cached tokens has another one")
}
