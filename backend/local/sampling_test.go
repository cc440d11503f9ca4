package local

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art"
)

func seeded(t *testing.T) *rand.Rand {
	const seed = 12
	t.Logf("seed %d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}

// anySettings are random settings of all kinds.
func anySettings(rng *rand.Rand) *art.ChatOptions {
	one := func(of ...float64) *float64 { return &of[rng.IntN(len(of))] }
	o := &art.ChatOptions{
		Seed: new(rng.Uint64()), MaxTokens: new(8 + rng.IntN(20)), Temperature: one(1, 0.7, 1.5), TopP: one(1, 0.9),
		MinP: one(0, 0.05), RepetitionPenalty: one(1, 1.3), PresencePenalty: one(0, 0.5), FrequencyPenalty: one(0, -0.5),
		MinTokens: new(rng.IntN(8)), TopLogprobs: new(rng.IntN(4)),
	}
	if rng.IntN(2) == 0 {
		o.LogitBias = map[int32]float64{int32(rng.IntN(200)): 6, int32(rng.IntN(200)): -6}
	}
	if rng.IntN(4) == 0 {
		o.BadWords, o.IgnoreEOS = []string{"e", "the"}, new(rng.IntN(2) == 0)
	}
	if rng.IntN(4) == 0 {
		for range 30 {
			o.AllowedTokenIDs = append(o.AllowedTokenIDs, int32(rng.IntN(200)))
		}
	}
	if rng.IntN(2) == 0 {
		o.Stop, o.StopTokenIDs = []string{"e", " a"}, []int32{int32(rng.IntN(200)), int32(rng.IntN(200))}
	}
	return o
}

// TestComplete_AnySettings: with any settings the logprobs of the sample are those of a scoring pass, bit for bit, and
// its settings reproduce it; the pieces of Stream, joined, are the same reply.
func TestComplete_AnySettings(t *testing.T) {
	b, rng := open(t, t.TempDir()), seeded(t)
	m := art.NewModel("m", nil)
	require.NoError(t, m.Register(t.Context(), b))
	for range 40 {
		opts := anySettings(rng)
		want, err := m.Complete(t.Context(), ask("What is 7+5?"), opts)
		require.NoError(t, err)
		s := want.Message.Sample
		all := slices.Concat(s.PromptIDs, s.IDs)
		scores, _, err := b.Logprobs(t.Context(), m, all)
		require.NoError(t, err)
		require.Equal(t, scores[len(s.PromptIDs)-1:], s.Logprobs)
		require.Equal(t, s.Settings.Reshapes(), s.Sampled != nil)
		require.Len(t, want.TopLogprobs, min(*opts.TopLogprobs, 1)*len(s.IDs))
		require.GreaterOrEqual(t, len(s.IDs), min(*opts.MinTokens+1, *opts.MaxTokens))
		if want.Stopped != "" {
			require.Contains(t, opts.Stop, want.Stopped)
			require.Equal(t, art.FinishStop, want.Finish)
		}

		var got art.ChatResponse
		var ids []int32
		again, err := m.Stream(t.Context(), ask("What is 7+5?"), opts, func(p art.Piece) error {
			got.Message.Content += p.Content
			got.TopLogprobs = append(got.TopLogprobs, p.TopLogprobs...)
			ids = append(ids, p.IDs...)
			return nil
		})
		require.NoError(t, err)
		again.ID, again.Usage.CachedTokens = want.ID, want.Usage.CachedTokens
		require.Equal(t, want, again)
		require.Equal(t, want.Message.Content, got.Message.Content)
		require.Equal(t, want.TopLogprobs, got.TopLogprobs)
		require.Equal(t, s.IDs, ids)
	}
}

// TestSample_Settings: stop strings, stop tokens and the least length hold for prompts of ids as for chats, and pieces
// are the reply.
func TestSample_Settings(t *testing.T) {
	b, rng := open(t, t.TempDir()), seeded(t)
	m := art.NewModel("m", nil)
	require.NoError(t, m.Register(t.Context(), b))
	first, err := m.Complete(t.Context(), ask("Tell me a story."), &art.ChatOptions{MaxTokens: new(1)})
	require.NoError(t, err)
	prompt := first.Message.Sample.PromptIDs
	for range 20 {
		opts, text := anySettings(rng), ""
		chat, err := m.Complete(t.Context(), ask("Tell me a story."), opts)
		require.NoError(t, err)
		r, err := m.Sample(t.Context(), prompt, opts, func(p art.Piece) error { text += p.Content; return nil })
		require.NoError(t, err)
		require.Equal(t, chat.Message.Sample, r.Message.Sample)
		require.Equal(t, r.Message.Content, text)
		require.Equal(t, chat.Stopped, r.Stopped)
	}
}

// TestSample_AllowedTokens: a reply has the allowed tokens only, and ends by itself only if an end token is among them.
// The distribution over them is the renormalised one.
func TestSample_AllowedTokens(t *testing.T) {
	b := open(t, t.TempDir())
	m := art.NewModel("m", nil)
	require.NoError(t, m.Register(t.Context(), b))
	prompt, err := b.Encode(t.Context(), m, "Once upon a time", false)
	require.NoError(t, err)
	allowed, err := b.Encode(t.Context(), m, "abc", false)
	require.NoError(t, err)
	slices.Sort(allowed)
	allowed = slices.Compact(allowed)
	for seed := range uint64(3) {
		opts := &art.ChatOptions{
			Seed: &seed, MaxTokens: new(6), AllowedTokenIDs: allowed, TopLogprobs: new(20), Temperature: new(1.0),
		}
		r, err := m.Sample(t.Context(), prompt, opts, nil)
		require.NoError(t, err)
		s := r.Message.Sample
		require.Len(t, s.IDs, 6, "nothing ends it")
		require.Equal(t, art.FinishLength, r.Finish)
		for i, id := range s.IDs {
			require.Contains(t, allowed, id)
			scores, _, err := b.Logprobs(t.Context(), m, slices.Concat(prompt, s.IDs[:i+1]))
			require.NoError(t, err)
			require.Equal(t, scores[len(scores)-1], s.Logprobs[i], "under the policy")
			total := 0.0
			for _, other := range allowed {
				one, _, err := b.Logprobs(t.Context(), m, slices.Concat(prompt, s.IDs[:i], []int32{other}))
				require.NoError(t, err)
				total += math.Exp(float64(one[len(one)-1]))
			}
			require.InDelta(t, float64(s.Logprobs[i])-math.Log(total), s.Sampled[i], 1e-4)
		}
	}
	one, err := m.Sample(t.Context(), prompt, &art.ChatOptions{MaxTokens: new(3), AllowedTokenIDs: allowed[:1]}, nil)
	require.NoError(t, err)
	require.Equal(t, []bool{true, true, true}, one.Message.Sample.Forced, "there was no choice")
	_, err = m.Sample(t.Context(), prompt, &art.ChatOptions{AllowedTokenIDs: []int32{1 << 30}}, nil)
	require.ErrorIs(t, err, art.ErrInvalid)
	_, err = m.Sample(t.Context(), prompt, &art.ChatOptions{AllowedTokenIDs: []int32{}}, nil)
	require.ErrorIs(t, err, art.ErrInvalid)
}

// TestSample_BadWords: the last token of a word is not sampled behind the others.
func TestSample_BadWords(t *testing.T) {
	b := open(t, t.TempDir())
	m := art.NewModel("m", nil)
	require.NoError(t, m.Register(t.Context(), b))
	prompt, err := b.Encode(t.Context(), m, "Once upon a time", false)
	require.NoError(t, err)
	tried := 0
	for seed := range uint64(8) {
		opts := &art.ChatOptions{Seed: &seed, MaxTokens: new(20), IgnoreEOS: new(true)}
		free, err := m.Sample(t.Context(), prompt, opts, nil)
		require.NoError(t, err)
		ids := free.Message.Sample.IDs
		require.Len(t, ids, 20, "the end token does not end it")
		word, err := b.Decode(t.Context(), m, ids[4:6])
		require.NoError(t, err)
		spelled, err := b.Encode(t.Context(), m, word, false)
		require.NoError(t, err)
		if !slices.Equal(spelled, ids[4:6]) {
			continue // its tokens are not those of its text
		}
		opts.BadWords = []string{word}
		r, err := m.Sample(t.Context(), prompt, opts, nil)
		require.NoError(t, err)
		got := r.Message.Sample.IDs
		for i := range got[1:] {
			require.NotEqual(t, spelled, got[i:i+2], "seed %d: %q", seed, word)
		}
		tried++
	}
	require.Positive(t, tried)
}

// TestComplete_StopToken: a stop token ends the reply; it is in the sample and not in the text.
func TestComplete_StopToken(t *testing.T) {
	b := open(t, t.TempDir())
	m := art.NewModel("m", nil)
	require.NoError(t, m.Register(t.Context(), b))
	opts := &art.ChatOptions{Seed: new(uint64(3)), MaxTokens: new(20)}
	whole, err := m.Complete(t.Context(), ask("What is 7+5?"), opts)
	require.NoError(t, err)
	ids := whole.Message.Sample.IDs
	stop := ids[len(ids)/2]
	opts.StopTokenIDs = []int32{stop}
	cut, err := m.Complete(t.Context(), ask("What is 7+5?"), opts)
	require.NoError(t, err)
	at := slices.Index(ids, stop)
	require.Equal(t, ids[:at+1], cut.Message.Sample.IDs)
	text, err := b.Decode(t.Context(), m, ids[:at])
	require.NoError(t, err)
	require.Equal(t, text, cut.Message.Content)
	require.Equal(t, art.FinishStop, cut.Finish)
	opts.StopTokenIDs = []int32{1 << 30}
	_, err = m.Complete(t.Context(), ask("What is 7+5?"), opts)
	require.ErrorIs(t, err, art.ErrInvalid)
}

// TestComplete_PromptLogprobs are those of a scoring pass, with the likeliest tokens beside them.
func TestComplete_PromptLogprobs(t *testing.T) {
	b := open(t, t.TempDir())
	m := art.NewModel("m", nil)
	require.NoError(t, m.Register(t.Context(), b))
	r, err := m.Complete(t.Context(), ask(strings.Repeat("a word ", 9)), &art.ChatOptions{
		MaxTokens: new(1), PromptLogprobs: new(2),
	})
	require.NoError(t, err)
	ids := r.Message.Sample.PromptIDs
	scores, _, err := b.Logprobs(t.Context(), m, ids)
	require.NoError(t, err)
	require.Len(t, r.PromptLogprobs, len(ids))
	require.Empty(t, r.PromptLogprobs[0])
	for i, list := range r.PromptLogprobs[1:] {
		require.Equal(t, ids[i+1], list[0].ID)
		require.Equal(t, scores[i], list[0].Logprob)
		require.GreaterOrEqual(t, len(list), 2)
	}
}
