package engine

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art/internal/graphx/graphtest"
	"github.com/goart-dev/art/internal/sampling"
)

// poolOf returns a pool of n engines.
func poolOf(t testing.TB, n int) *Pool {
	t.Helper()
	var engines []*Engine
	for range n {
		engines = append(engines, testEngine(t, 4))
	}
	return NewPool(engines...)
}

// TestPool_LikeOne: whatever engine of a pool answers, a reply has the bits of a single engine's, of the base model and
// of adapters. All engines work, and the stats are their sums.
func TestPool_LikeOne(t *testing.T) {
	rng := rand.New(rand.NewPCG(testSeed, 200))
	one, three := poolOf(t, 1), poolOf(t, 3)
	adapter := testAdapter(t, 4)
	var requests []Request
	for i := range 24 {
		prompt := make([]int32, 1+rng.IntN(40))
		for j := range prompt {
			prompt[j] = int32(rng.IntN(testConfig().VocabSize))
		}
		requests = append(requests, Request{
			Prompt: prompt, MaxTokens: 5, Seed: uint64(i), Sampling: sampling.Settings{Temperature: 1, TopP: 1},
		})
	}
	answer := func(p *Pool) []*Result {
		loaded, err := p.NewAdapter(adapter)
		require.NoError(t, err)
		out := make([]*Result, len(requests))
		var wg sync.WaitGroup
		for i, r := range requests {
			if i%2 == 1 {
				r.Adapter = loaded
			}
			wg.Go(func() {
				var err error
				out[i], err = p.Complete(context.Background(), r)
				require.NoError(t, err)
			})
		}
		wg.Wait()
		return out
	}
	want, got := answer(one), answer(three)
	for i := range want {
		require.Equal(t, want[i].IDs, got[i].IDs)
		graphtest.SameBits(t, want[i].Logprobs, got[i].Logprobs, "request %d", i)
	}
	sampled := 0
	for i, e := range three.engines {
		require.Positive(t, e.Stats().Sampled, "engine %d", i)
		sampled += e.Stats().Sampled
	}
	require.Equal(t, sampled, three.Stats().Sampled)
	require.Equal(t, 3*one.Stats().Blocks, three.Stats().Blocks)
	require.Equal(t, []int{0, 0, 0}, three.busy)
}

// TestPool_Routes: a prompt goes where most of it was served, of the same adapter, unless that engine is much busier
// than another; others go to the least busy one.
func TestPool_Routes(t *testing.T) {
	p := poolOf(t, 2) // of 4 slots: 1 more request is not much busier
	prompt := func(n int, first int32) []int32 {
		ids := make([]int32, n)
		ids[0] = first
		return ids
	}
	first := p.enter(Request{Prompt: prompt(70, 1)})
	require.Equal(t, 0, first)
	require.Equal(t, 0, p.enter(Request{Prompt: prompt(100, 1)}), "it begins the same, and one more is not much")
	require.Equal(t, 1, p.enter(Request{Prompt: prompt(70, 1)}), "two more are")
	require.Equal(t, 1, p.enter(Request{Prompt: prompt(70, 2)}), "the least busy one")
	for _, at := range []int{0, 0, 1, 1} {
		p.leave(at)
	}
	require.Equal(t, 1, p.enter(Request{Prompt: prompt(150, 2)}), "a later turn")
	require.Equal(t, 0, p.enter(Request{Prompt: prompt(150, 2), Adapter: &Adapter{id: &identity{}}}), "another policy")
	require.Equal(t, 0, p.enter(Request{Prompt: prompt(100, 1)}), "the longest beginning counts")
}

// TestPool_Forgets: the beginnings that are remembered do not grow without bound.
func TestPool_Forgets(t *testing.T) {
	p := poolOf(t, 2)
	for i := range int32(mostHomes + 1) {
		p.leave(p.enter(Request{Prompt: []int32{i, i + 1}}))
	}
	require.LessOrEqual(t, len(p.homes[0])+len(p.homes[1]), mostHomes)
	hashes := p.beginnings(Request{Prompt: []int32{mostHomes, mostHomes + 1}})
	_, ok := p.home(hashes)
	require.True(t, ok, "the newest is known")
	_, ok = p.home(p.beginnings(Request{Prompt: []int32{0, 1}}))
	require.False(t, ok, "the oldest is not")
}
