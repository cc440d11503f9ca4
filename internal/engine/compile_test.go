package engine

import (
	"context"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art/internal/graphx/graphtest"
	"github.com/goart-dev/art/internal/sampling"
)

// TestComplete_BoundedCompilations: for any requests there is one graph for each width, each number of rows and each
// kind of adapter, and two for the cache. Sequential requests need one number of rows.
func TestComplete_BoundedCompilations(t *testing.T) {
	device, compiled := graphtest.Counting(t)
	params, err := testWeights(t).Params(device)
	require.NoError(t, err)
	e, err := New(Options{Device: device, Config: testConfig(), Params: params, Slots: 3})
	require.NoError(t, err)
	defer e.Close()
	adapters := []*Adapter{nil}
	for _, rank := range []int{8, 8, 4} {
		a, err := e.NewAdapter(testAdapter(t, rank))
		require.NoError(t, err)
		adapters = append(adapters, a)
	}
	ask := func(seed uint64) {
		rng := rand.New(rand.NewPCG(testSeed, seed))
		for length := 1; length < 150; length++ {
			prompt := make([]int32, length)
			for i := range prompt {
				prompt[i] = int32(rng.IntN(300))
			}
			_, err := e.Complete(context.Background(), Request{
				Prompt: prompt, MaxTokens: 1 + length%3, Adapter: adapters[rng.IntN(len(adapters))],
				Sampling: sampling.Settings{Temperature: 1, TopP: 1},
			})
			require.NoError(t, err)
		}
	}
	ask(1)
	ask(2)
	kinds, all := 3, compiled.Load() // the base, rank 8, rank 4
	widths := len(Options{Context: 160}.shapes().Widths)
	t.Logf("%d graphs for %d widths and %d kinds of adapters", all, widths, kinds)
	require.LessOrEqual(t, all, int64(kinds*widths+2))
	require.Greater(t, all, int64(widths), "the test wants most widths")
	ask(1)
	require.Equal(t, all, compiled.Load(), "what was compiled is used again")
}
