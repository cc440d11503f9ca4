//go:build cgo

package xla_test

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art/internal/engine"
	"github.com/goart-dev/art/internal/sampling"
)

// TestDecode_StopsInLoop: a call of many tokens ends with the last slot that is done, by an end id or by its number of
// tokens, and makes no step for what would follow.
func TestDecode_StopsInLoop(t *testing.T) {
	w, on := weights(t)["random"], device(t, configs[0])
	params, err := w.Params(on)
	require.NoError(t, err)
	e, err := engine.New(engine.Options{
		Device: on, Config: w.Config, Params: params, Slots: 2, Context: 64, FewShapes: true, DecodeSteps: 16,
	})
	require.NoError(t, err)
	defer e.Close()
	sampled := 0               // tokens of all replies
	stepsSoFar := func() int { // once the last round is counted, which is after its replies are there
		require.Eventually(t, func() bool { return e.Stats().Sampled == sampled }, 10*time.Second, time.Millisecond)
		return e.Stats().Steps
	}
	complete := func(most int, end ...int32) (*engine.Result, int) {
		before := stepsSoFar()
		r, err := e.Complete(t.Context(), engine.Request{
			Prompt: []int32{1, 2, 3}, MaxTokens: most, End: end, Sampling: sampling.Settings{TopP: 1},
		})
		require.NoError(t, err)
		sampled += len(r.IDs)
		return r, stepsSoFar() - before
	}
	all, _ := complete(14)
	require.Len(t, all.IDs, 14)
	for _, at := range []int{2, 5, 9} {
		var first int // where this id comes first
		for first = 0; all.IDs[first] != all.IDs[at]; first++ {
		}
		r, steps := complete(14, all.IDs[at])
		require.Equal(t, engine.End, r.Reason)
		require.LessOrEqual(t, steps, first+1, "the reply has %d tokens", len(r.IDs))
	}
	_, steps := complete(4)
	require.LessOrEqual(t, steps, 4)

	before := stepsSoFar() // the longer of two decides
	var both sync.WaitGroup
	for _, most := range []int{3, 12} {
		both.Go(func() {
			_, err := e.Complete(t.Context(), engine.Request{
				Prompt: []int32{int32(most)}, MaxTokens: most, Sampling: sampling.Settings{TopP: 1},
			})
			require.NoError(t, err)
		})
	}
	both.Wait()
	sampled += 3 + 12
	require.GreaterOrEqual(t, stepsSoFar()-before, 11)
}
