package engine

import (
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art/internal/graphx/graphtest"
)

// TestStream_LikeComplete: the tokens that are handed out, joined, are the result of Complete, with one token a call of
// the device and with many.
func TestStream_LikeComplete(t *testing.T) {
	rng := rand.New(rand.NewPCG(testSeed, 90))
	for _, steps := range []int{1, 4} {
		e := decodeEngine(t, graphtest.Device(t), steps, 3)
		for range 12 {
			r := mixedRequest(rng, nil)
			if !r.onHost() {
				r.Sampling.TopK, r.Sampling.TopP = 0, 1
			}
			want := all(t, e, []Request{again(r)})[0]
			joined, calls := &Result{}, 0
			got, err := e.Stream(context.Background(), r, func(tokens []Token) error {
				require.NotEmpty(t, tokens)
				for _, token := range tokens {
					joined.add(token, r.reshapes(), r.Top > 0)
				}
				calls++
				return nil
			})
			require.NoError(t, err)
			got.Cached = 0
			sameReply(t, want, got, "%+v", r)
			joined.Reason = want.Reason
			joined.Cached = got.Cached
			require.Equal(t, got, joined)
			require.LessOrEqual(t, calls, len(want.IDs))
		}
	}
}

// TestStream_SlowReader: a reader that does not return stalls neither other requests nor its own reply, of which it
// gets the rest at once.
func TestStream_SlowReader(t *testing.T) {
	e, device := interrupted(t, 1, 2)
	slow := Request{Prompt: []int32{1, 2, 3}, MaxTokens: 40}
	first, released, other := make(chan struct{}), make(chan struct{}), Request{Prompt: []int32{4}, MaxTokens: 60}
	device.set(5, func() error { // the reply goes on once the reader is slow
		<-first
		return nil
	})
	type read struct {
		calls []int
		err   error
	}
	done := make(chan read)
	go func() {
		var r read
		_, r.err = e.Stream(context.Background(), slow, func(tokens []Token) error {
			if r.calls = append(r.calls, len(tokens)); len(r.calls) == 1 {
				close(first)
				<-released
			}
			return nil
		})
		done <- r
	}()
	<-first
	for range 2 { // longer than what is left of the slow reply, in a slot beside it
		_, err := e.Complete(context.Background(), other)
		require.NoError(t, err)
	}
	close(released)
	r := <-done
	require.NoError(t, r.err)
	require.LessOrEqual(t, len(r.calls), 2, "one call when the reply was over before the first one")
	sum := 0
	for _, n := range r.calls {
		sum += n
	}
	require.Equal(t, 40, sum)
}

// TestStream_Ends: an error of the reader ends the reply and frees its slot, and so does the end of the context.
func TestStream_Ends(t *testing.T) {
	// On one core every reply is whole before its reader runs.
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(max(2, runtime.GOMAXPROCS(0))))
	e, gone := testEngine(t, 1), errors.New("gone")
	endless, calls := Request{Prompt: []int32{1, 2, 3}}, 0
	_, err := e.Stream(context.Background(), endless, func([]Token) error { calls++; return gone })
	require.ErrorIs(t, err, gone)
	require.Equal(t, 1, calls)
	for range 100 { // the reply may be whole before its reader runs, which the engine does not wait for
		ctx, cancel := context.WithCancelCause(context.Background())
		if _, err = e.Stream(ctx, endless, func([]Token) error { cancel(gone); return nil }); err != nil {
			break
		}
	}
	require.ErrorIs(t, err, gone)
	_, err = e.Complete(context.Background(), Request{Prompt: []int32{1}, MaxTokens: 2})
	require.NoError(t, err, "the slot is free")
	_, err = e.Stream(context.Background(), Request{}, nil)
	require.ErrorContains(t, err, "no tokens")
	e.Close()
	_, err = e.Stream(context.Background(), endless, nil)
	require.ErrorIs(t, err, ErrClosed)
}
