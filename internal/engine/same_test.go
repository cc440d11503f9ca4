package engine

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art/internal/graphx/graphtest"
)

// On the CPU device the bits of a logprob do not depend on the shapes of a graph, and so neither on how many tokens are
// computed at once nor beside which other requests. On others they agree within graphtest.Rounding.

// sameLogprobs requires equal logprobs, or within rounding.
func sameLogprobs(t testing.TB, want, got []float32, format string, args ...any) {
	t.Helper()
	require.Len(t, got, len(want), append([]any{format}, args...)...)
	for i := range want {
		sameLogprob(t, want[i], got[i], format, args...)
	}
}

// sameLogprob requires an equal logprob, or one within rounding.
func sameLogprob(t testing.TB, want, got float32, format string, args ...any) {
	t.Helper()
	require.InDelta(t, want, got, graphtest.Rounding(), append([]any{format}, args...)...)
}

// sameCandidates requires equal candidates, or logprobs within rounding. Tokens that are so close may change places.
func sameCandidates(t testing.TB, want, got []Candidate) {
	t.Helper()
	if graphtest.Rounding() == 0 {
		require.Equal(t, want, got)
		return
	}
	require.Len(t, got, len(want))
	for i := range want {
		require.Equal(t, want[i].Rank, got[i].Rank)
		sameLogprob(t, want[i].Logprob, got[i].Logprob, "candidate %d", i)
	}
}

// sameReply requires equal replies, or those of equal tokens whose logprobs are within rounding.
func sameReply(t testing.TB, want, got *Result, format string, args ...any) {
	t.Helper()
	if graphtest.Rounding() == 0 {
		require.Equal(t, want, got, append([]any{format}, args...)...)
		return
	}
	likeSteps(t, []*Result{want}, []*Result{got}, 0)
	require.Equal(t, want.Forced, got.Forced, append([]any{format}, args...)...)
	require.Equal(t, want.Cached, got.Cached, append([]any{format}, args...)...)
	require.Len(t, got.Top, len(want.Top), append([]any{format}, args...)...)
	for i := range want.Top {
		sameCandidates(t, want.Top[i], got.Top[i])
	}
}

// sameReplies requires equal replies, as sameReply does.
func sameReplies(t testing.TB, want, got []*Result) {
	t.Helper()
	require.Len(t, got, len(want))
	for i := range want {
		sameReply(t, want[i], got[i], "request %d", i)
	}
}
