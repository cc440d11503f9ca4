package engine

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art/internal/graphx/graphtest"
)

// TestScore_Sampled: scoring gives the logprobs of sampling bit for bit, also over more rows than are in memory at
// once.
func TestScore_Sampled(t *testing.T) {
	device, e := graphtest.Device(t), testEngine(t, 2)
	rng := rand.New(rand.NewPCG(testSeed, 3))
	params := e.opts.Params
	for _, a := range []*Adapter{nil, onDevice(t, testAdapter(t, 8))} {
		for _, n := range []int{1, scoredRows + 10} {
			r := randomRequest(rng, a)
			r.Prompt, r.MaxTokens, r.End = make([]int32, n), 15, nil
			for i := range r.Prompt {
				r.Prompt[i] = int32(rng.IntN(300))
			}
			result, err := e.Complete(context.Background(), r)
			require.NoError(t, err)
			scores, err := Score(device, testConfig(), params, a, slices.Concat(r.Prompt, result.IDs))
			require.NoError(t, err)
			require.Equal(t, result.Logprobs, scores[n-1:])
		}
	}
}

// TestScore_Errors: a single id has no logprobs, and invalid ids are errors.
func TestScore_Errors(t *testing.T) {
	e := testEngine(t, 1)
	score := func(ids ...int32) ([]float32, error) {
		return Score(graphtest.Device(t), testConfig(), e.opts.Params, nil, ids)
	}
	lp, err := score(3)
	require.NoError(t, err)
	require.Empty(t, lp)
	_, err = score()
	require.ErrorContains(t, err, "no tokens to score")
	_, err = score(1, 301)
	require.ErrorContains(t, err, "token 301 is not in the vocabulary of 301")
	_, err = score(make([]int32, 161)...)
	require.ErrorIs(t, err, ErrTooLong)
	require.ErrorContains(t, err, "161 tokens, the context has 160")
	_, err = score(make([]int32, 160)...)
	require.NoError(t, err)
}
