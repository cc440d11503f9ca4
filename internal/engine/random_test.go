package engine

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/gomlx/compute/dtypes"
	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art/internal/graphx/graphtest"
	"github.com/goart-dev/art/internal/sampling"
)

// steps returns the base model and some steps of one adapter, with their scorers.
func steps(t *testing.T, n int) (list []*Adapter, scorers []*scorer) {
	list = append(list, nil)
	for step := range n {
		a := testAdapter(t, 8)
		var data [][]float32
		for _, p := range a.Params() {
			for i := range p.Data {
				p.Data[i] *= 1 + float32(step)/4
			}
			data = append(data, p.Data)
		}
		require.NoError(t, a.SetParams(data))
		list = append(list, onDevice(t, a))
	}
	for _, a := range list {
		scorers = append(scorers, newScorer(t, a))
	}
	return list, scorers
}

// traffic is random requests, of which some go on from the replies of others.
type traffic struct {
	adapters []*Adapter

	mu    sync.Mutex
	rng   *rand.Rand
	count int
	said  [][]int32 // conversations
}

// next returns a request, and which adapter it has: the newest step, which changes in the course of the requests, the
// base model, or a step that it is pinned to.
func (tr *traffic) next(total int) (r Request, adapter int) {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	newest := 1 + tr.count*(len(tr.adapters)-1)/total
	tr.count++
	adapter = []int{newest, newest, tr.rng.IntN(newest + 1)}[tr.rng.IntN(3)]
	r = mixedRequest(tr.rng, tr.adapters[adapter])
	switch tr.rng.IntN(4) {
	case 0: // a system prompt of more than a block
		system := make([]int32, 50)
		for i := range system {
			system[i] = int32(30 + i)
		}
		r.Prompt = append(system, r.Prompt...)
	case 1:
		if len(tr.said) > 0 {
			earlier := tr.said[tr.rng.IntN(len(tr.said))]
			r.Prompt = slices.Concat(earlier[:1+tr.rng.IntN(len(earlier))], r.Prompt[:min(len(r.Prompt), 9)])
		}
	}
	if r.Prompt = r.Prompt[:min(len(r.Prompt), 150)]; tr.rng.IntN(4) == 0 {
		r.MaxTokens, r.End = 1+tr.rng.IntN(100), nil
	}
	return r, adapter
}

// keep keeps a conversation.
func (tr *traffic) keep(r Request, got *Result) {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	tr.said = append(tr.said, slices.Concat(r.Prompt, got.IDs))
}

// TestComplete_RandomRequests: with any mix of settings, masks, steps of an adapter, conversations that go on and
// cancelled requests, on engines with more requests than slots, one of which has too little cache for them, the
// recorded logprobs are those of a scoring pass bit for bit, and no block is lost.
func TestComplete_RandomRequests(t *testing.T) {
	n := 500
	if testing.Short() {
		n = 120
	}
	adapters, scorers := steps(t, 3)
	for name, opts := range map[string]Options{
		"enough cache":     {Slots: 7},
		"too little cache": {Slots: 9, CacheTokens: 6 * blockTokens},
	} {
		t.Run(name, func(t *testing.T) {
			opts.Device, opts.Config = graphtest.Device(t), testConfig()
			var err error
			opts.Params, err = testWeights(t).Params(opts.Device)
			require.NoError(t, err)
			e, err := New(opts)
			require.NoError(t, err)
			defer e.Close()
			tr := &traffic{adapters: adapters, rng: rand.New(rand.NewPCG(testSeed, 80))}
			requests, got, of := make([]Request, n), make([]*Result, n), make([]int, n)
			var wg sync.WaitGroup
			for worker := range 20 {
				wg.Go(func() {
					for i := worker; i < n; i += 20 {
						requests[i], of[i] = tr.next(n)
						ctx, cancel := context.WithCancel(t.Context())
						if i%10 == 9 {
							time.AfterFunc(time.Duration(i%50)*time.Millisecond, cancel)
						}
						r, err := e.Complete(ctx, requests[i])
						if cancel(); err != nil {
							require.ErrorIs(t, err, context.Canceled)
							continue
						}
						got[i] = r
						tr.keep(requests[i], r)
					}
				})
			}
			wg.Wait()
			for i, r := range requests {
				if got[i] != nil {
					checkReply(t, scorers[of[i]], r, got[i], fmt.Sprintf("request %d, seed %d", i, testSeed))
				}
			}
			requireNoBlocksInUse(t, e)
			s := e.Stats()
			t.Logf("%+v", s)
			require.Positive(t, s.Reused)
			if opts.CacheTokens > 0 {
				require.Positive(t, s.Preempted)
				require.Positive(t, s.Evicted)
			}
		})
	}
}

// requireNoBlocksInUse waits until the engine has noticed that the last callers are gone.
func requireNoBlocksInUse(t *testing.T, e *Engine) {
	t.Helper()
	require.Eventually(t, func() bool {
		if s := e.Stats(); s.Running == 0 && s.Waiting == 0 {
			return s.Free+s.Cached == s.Blocks
		}
		return false
	}, time.Minute, time.Millisecond, "%+v", e.Stats())
}

// TestComplete_Together: of requests with one prompt that arrive together, one computes it.
func TestComplete_Together(t *testing.T) {
	e := testEngine(t, 8)
	requests := make([]Request, 8)
	for i := range requests {
		prompt := make([]int32, 100)
		for j := range prompt {
			prompt[j] = int32(j + 1)
		}
		requests[i] = Request{Prompt: prompt, MaxTokens: 8, Seed: uint64(i)}
		requests[i].Sampling.Temperature, requests[i].Sampling.TopP = 1, 1
	}
	got, errs := some(e, requests)
	alone := 0
	for i := range got {
		require.NoError(t, errs[i])
		if got[i].Cached == 0 {
			alone++
			continue
		}
		require.Equal(t, 99, got[i].Cached, "all but the last token")
	}
	require.Equal(t, 1, alone)
	requireNoBlocksInUse(t, e)
	require.Equal(t, 100+7, e.Stats().Prefilled, "all but the last token once")
	require.Equal(t, 8*8, e.Stats().Sampled)
	scorer := newScorer(t, nil)
	for i := range got {
		checkReply(t, scorer, requests[i], got[i], fmt.Sprintf("request %d", i))
	}
}

// TestComplete_TurnsComputeWhatIsNew: of a conversation of 10 turns, each computes the last token of the reply before,
// which was sampled and not computed, and what the user adds.
func TestComplete_TurnsComputeWhatIsNew(t *testing.T) {
	const turns, added, sampled = 10, 9, 5
	e := testEngine(t, 2)
	rng := rand.New(rand.NewPCG(testSeed, 91))
	var conversation []int32
	for turn := range turns {
		for range added {
			conversation = append(conversation, int32(rng.IntN(300)))
		}
		r, err := e.Complete(t.Context(), Request{
			Prompt: slices.Clone(conversation), MaxTokens: sampled, Seed: uint64(turn),
			Sampling: sampling.Settings{Temperature: 1, TopP: 1},
		})
		require.NoError(t, err)
		require.Equal(t, max(0, len(conversation)-added-1), r.Cached, "turn %d", turn)
		conversation = append(conversation, r.IDs...)
	}
	requireNoBlocksInUse(t, e)
	require.Equal(t, turns*(added+1)-1, e.Stats().Prefilled)
}

// TestComplete_Queue: beyond the requests that may wait, others are refused, and served again later.
func TestComplete_Queue(t *testing.T) {
	hold, running, once := make(chan struct{}), make(chan struct{}), sync.Once{}
	device := graphtest.Hooked(t, graphtest.Hooks{Run: func() error {
		once.Do(func() { close(running) })
		<-hold
		return nil
	}})
	params, err := testWeights(t).Params(device)
	require.NoError(t, err)
	made := make(chan *Engine, 1)
	go func() {
		e, err := New(Options{Device: device, Config: testConfig(), Params: params, Slots: 1, Queue: 1})
		require.NoError(t, err)
		made <- e
	}()
	<-running // the cache is cleared
	hold <- struct{}{}
	e := <-made
	defer e.Close()
	errs := make(chan error, 2)
	for range 2 {
		go func() {
			_, err := e.Complete(context.Background(), Request{Prompt: []int32{1, 2}, MaxTokens: 2})
			errs <- err
		}()
	}
	require.Eventually(t, func() bool { return e.inside.Load() == 2 }, time.Minute, time.Millisecond)
	_, err = e.Complete(context.Background(), Request{Prompt: []int32{3}})
	require.ErrorIs(t, err, ErrBusy)
	close(hold)
	require.NoError(t, <-errs)
	require.NoError(t, <-errs)
	_, err = e.Complete(context.Background(), Request{Prompt: []int32{3}, MaxTokens: 1})
	require.NoError(t, err)
	requireNoBlocksInUse(t, e)
	_, err = New(Options{Device: graphtest.CPU(t), Config: testConfig(), Params: params, CacheType: dtypes.BFloat16})
	require.ErrorContains(t, err, `a cache of type BFloat16, which "cpu" does not have`)
	_, err = New(Options{Device: device, Config: testConfig(), Params: params, Slots: 2, CacheTokens: 100})
	require.ErrorContains(t, err, "at least 160, the context")
}
