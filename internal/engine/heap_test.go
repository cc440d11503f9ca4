package engine

import (
	"context"
	"flag"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art/internal/graphx/graphtest"
	"github.com/goart-dev/art/internal/sampling"
)

var large = flag.Bool("large", false, "answer 10,000 requests in place of 200, and compare the heap")

// heap returns the bytes of objects that are in use.
func heap() int {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC() // what finalizers have let go
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}

// answerMany answers n random requests, 6 at once, of which every tenth is cancelled. The base model and an adapter, of
// which there is a new version each time, answer them.
func answerMany(t *testing.T, e *Engine, rng *rand.Rand, n int) {
	adapter, err := e.NewAdapter(testAdapter(t, 8))
	require.NoError(t, err)
	var mu sync.Mutex
	count := 0
	next := func() (r Request, i int, ok bool) {
		mu.Lock()
		defer mu.Unlock()
		count++
		r = mixedRequest(rng, []*Adapter{nil, adapter}[rng.IntN(2)])
		r.Prompt = r.Prompt[:min(len(r.Prompt), []int{9, 40}[rng.IntN(2)])]
		return r, count, count <= n
	}
	var clients sync.WaitGroup
	for range 6 {
		clients.Go(func() {
			for r, i, ok := next(); ok; r, i, ok = next() {
				ctx, cancel := context.WithCancel(t.Context())
				if i%10 == 0 {
					time.AfterFunc(time.Duration(i%7)*time.Millisecond, cancel)
				}
				if _, err := e.Complete(ctx, r); err != nil {
					require.ErrorIs(t, err, context.Canceled)
				}
				cancel()
			}
		})
	}
	clients.Wait()
	requireNoBlocksInUse(t, e)
}

// TestComplete_NoHeapGrowth: requests with any settings, cancelled ones and swapped adapters leave nothing behind. It
// is measured from where the last graph was compiled, once the cache is full.
func TestComplete_NoHeapGrowth(t *testing.T) {
	n, window := 200, 50
	if *large {
		n, window = 10_000, 500
	}
	device, compiled := graphtest.Counting(t)
	params, err := testWeights(t).Params(device)
	require.NoError(t, err)
	e, err := New(Options{Device: device, Config: testConfig(), Params: params, Slots: 4, CacheTokens: 320})
	require.NoError(t, err)
	t.Cleanup(e.Close)
	rng := rand.New(rand.NewPCG(testSeed, 90))
	graphs, before, done, all := int64(-1), 0, 0, 0
	for done < n {
		answerMany(t, e, rng, window)
		done, all = done+window, all+window
		if now := compiled.Load(); now != graphs {
			graphs, before, done = now, heap(), 0
		}
		require.Less(t, all, 20*n, "graphs are compiled again and again")
	}
	grown := heap() - before
	t.Logf("seed %d: %d bytes more than %d after %d requests of %d; %d graphs, %+v", testSeed, grown, before, done, all,
		graphs, e.Stats())
	require.Positive(t, e.Stats().Evicted, "the cache is not full")
	require.Less(t, grown, 64<<10+40*n)
}

// TestComplete_CollectsGarbage: beside a large cache the collector would wait until there is as much garbage.
func TestComplete_CollectsGarbage(t *testing.T) {
	if testing.Short() {
		t.Skip("the race detector touches all memory")
	}
	cache := make([]byte, 1<<30) // no page of it is touched
	runtime.GC()
	e := testEngine(t, 2)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	garbage := make([]byte, 256<<20)
	require.NotNil(t, garbage)
	_, err := e.Complete(t.Context(),
		Request{Prompt: []int32{1, 2, 3}, MaxTokens: 2, Sampling: sampling.Settings{TopP: 1}})
	require.NoError(t, err)
	runtime.ReadMemStats(&after)
	require.Greater(t, after.NumForcedGC, before.NumForcedGC)
	runtime.KeepAlive(cache)
}
