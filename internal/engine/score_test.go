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
			sameLogprobs(t, result.Logprobs, scores[n-1:], "prompt of %d", n)
		}
	}
}

// TestScoreTop_LikeScore: each list begins with the token and its logprob of Score, bit for bit, and its rank; the
// likeliest tokens follow.
func TestScoreTop_LikeScore(t *testing.T) {
	device, e := graphtest.Device(t), testEngine(t, 1)
	rng := rand.New(rand.NewPCG(testSeed, 5))
	for _, a := range []*Adapter{nil, onDevice(t, testAdapter(t, 8))} {
		for _, n := range []int{1, 2, 40, scoredRows + 11} {
			ids := make([]int32, n)
			for i := range ids {
				ids[i] = int32(rng.IntN(300))
			}
			want, err := Score(device, testConfig(), e.opts.Params, a, ids)
			require.NoError(t, err)
			got, err := ScoreTop(Scored{device, testConfig(), e.opts.Params, a, ids}, 3)
			require.NoError(t, err)
			require.Len(t, got, n-1)
			rows := newScorer(t, a).rows(t, ids)
			for i, list := range got {
				row := rows[i*301:][:301]
				sameLogprob(t, want[i], list[0].Logprob, "%d of %d", i, n)
				all := likeliest(row, 301)
				sameCandidates(t, all[list[0].Rank-1:][:1], list[:1])
				require.Equal(t, ids[i+1], list[0].ID)
				others := slices.DeleteFunc(slices.Clone(all[:3]), func(c Candidate) bool { return c.ID == ids[i+1] })
				sameCandidates(t, others, list[1:])
			}
		}
	}
	_, err := ScoreTop(Scored{device, testConfig(), e.opts.Params, nil, nil}, 3)
	require.ErrorContains(t, err, "no tokens to score")
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
