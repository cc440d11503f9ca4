package engine

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art/internal/graphx/graphtest"
)

// interrupts calls f before the n-th run of a graph after set was called.
type interrupts struct {
	left atomic.Int64
	f    func() error
}

func (i *interrupts) set(n int, f func() error) { i.f = f; i.left.Store(int64(n)) }

func (i *interrupts) hook() error {
	if i.left.Add(-1) == 0 {
		return i.f()
	}
	return nil
}

// interrupted returns an engine whose device can be interrupted.
func interrupted(t testing.TB, steps, slots int) (*Engine, *interrupts) {
	i := &interrupts{}
	return decodeEngine(t, graphtest.Hooked(t, graphtest.Hooks{Run: i.hook}), steps, slots), i
}

// TestComplete_CancelWhileRunning: a caller that cancels while the device computes gets the error at once, and the next
// request in the slot is not affected.
func TestComplete_CancelWhileRunning(t *testing.T) {
	for _, steps := range []int{1, 8} {
		e, device := interrupted(t, steps, 1)
		ctx, cancel := context.WithCancelCause(context.Background())
		gone := errors.New("gone")
		answered := make(chan struct{})
		device.set(3, func() error {
			cancel(gone)
			<-answered
			return nil
		})
		long := Request{Prompt: []int32{1, 2}, Seed: 3}
		_, err := e.Complete(ctx, long)
		close(answered)
		require.ErrorIs(t, err, gone)
		likeSteps(t, all(t, decodeEngine(t, graphtest.Device(t), 1, 1), []Request{long}), all(t, e, []Request{long}), 0)
	}
}

// TestClose_WhileRunning: Close waits for the running call only, also if no slot is free, and answers waiting requests.
func TestClose_WhileRunning(t *testing.T) {
	for _, steps := range []int{1, 8} {
		e, device := interrupted(t, steps, 1)
		running := make(chan struct{})
		device.set(3, func() error {
			close(running)
			<-e.quit
			return nil
		})
		errs := make(chan error, 2)
		for range 2 {
			go func() {
				_, err := e.Complete(context.Background(), Request{Prompt: []int32{1, 2}})
				errs <- err
			}()
		}
		<-running
		e.Close()
		require.ErrorIs(t, <-errs, ErrClosed)
		require.ErrorIs(t, <-errs, ErrClosed)
	}
}

// TestComplete_DeviceFails: whichever run fails, each request gets that error or the reply that it has without
// failures, and so do later requests, also if clearing the cache fails as well.
func TestComplete_DeviceFails(t *testing.T) {
	broken := errors.New("broken")
	for _, steps := range []int{1, 6} {
		for _, times := range []int{1, 2} {
			t.Run(fmt.Sprintf("%d tokens a call, %d failures", steps, times), func(t *testing.T) {
				e, device := interrupted(t, steps, 3)
				adapter, err := e.NewAdapter(testAdapter(t, 8))
				require.NoError(t, err)
				requests := decodeRequests(rand.New(rand.NewPCG(testSeed, 31)), 6, []*Adapter{nil, adapter})
				for i := range requests {
					requests[i].Sampling.TopK, requests[i].Sampling.TopP = 0, 1
				}
				want := all(t, e, requests)
				failures := 0
				for n := 1; n <= 10; n++ {
					left := times
					fail := func() error {
						if left--; left > 0 {
							device.left.Store(1)
						}
						return broken
					}
					device.set(n, fail)
					got, errs := some(e, requests)
					for i := range requests {
						if errs[i] == nil {
							likeSteps(t, want[i:i+1], got[i:i+1], 0)
							continue
						}
						failures++
						if times == 1 {
							require.ErrorIs(t, errs[i], broken)
						}
					}
					device.left.Store(0)
					likeSteps(t, want, all(t, e, requests), 0)
				}
				require.NotZero(t, failures, "seed %d", testSeed)
			})
		}
	}
}

// some sends concurrent requests and returns results and errors.
func some(e *Engine, requests []Request) ([]*Result, []error) {
	got, errs := make([]*Result, len(requests)), make([]error, len(requests))
	var wg sync.WaitGroup
	for i, r := range requests {
		wg.Go(func() { got[i], errs[i] = e.Complete(context.Background(), r) })
	}
	wg.Wait()
	return got, errs
}
