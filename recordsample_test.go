package art_test

import (
	"context"
	"slices"
	"testing"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/driver"
	"github.com/goart-dev/art/internal/dev/arttest"
)

// samplePrompt continues a text, whose token ids are its runes, and returns all ids.
func samplePrompt(ctx context.Context, t *testing.T, m *art.Model, prompt string) (all string) {
	t.Helper()
	r, err := m.Sample(ctx, []rune(prompt), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	return prompt + r.Message.Content
}

// Prompts of token ids are recorded: one that goes on from a reply continues its history, others begin one and say why.
func TestRecorder_TokenPrompts(t *testing.T) {
	m, r := registered(t, &arttest.Backend{Reply: arttest.Script("x")}, nil), art.NewRecorder()
	ctx := r.Context(t.Context())
	first := samplePrompt(ctx, t, m, "one")
	second := samplePrompt(ctx, t, m, first+" two")
	samplePrompt(ctx, t, m, second)  // nothing is new in the prompt
	samplePrompt(ctx, t, m, "other") // shares a letter with the first
	samplePrompt(ctx, t, m, first+" too")
	askRecorded(t, m, r, nil, art.User("u"))
	replies, err := m.SampleN(ctx, [][]int32{[]rune("q")}, 2, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	tr := r.Close()
	wantEqual(t, "histories", histories(tr), [][]string{
		{"user:one", "assistant:x*", "user: two", "assistant:x*", "assistant:x*"},
		{"user:other", "assistant:x*"}, {"user:onex too", "assistant:x*"}, {"user:u", "assistant:x*"},
		{"user:q", "assistant:x*"}, {"user:q", "assistant:x*"},
	})
	wantEqual(t, "logs", tr.Logs, []string{
		"additional_histories[0]: of the 5 token ids of the prompt the first 1 are those of the main history, " +
			"which has more or others",
		"additional_histories[1]: of the 8 token ids of the prompt the first 6 are those of the main history, " +
			"which has more or others",
		"additional_histories[2]: message 0 (user) differs from that of the main history in its content",
		"additional_histories[3]: of the 1 token ids of the prompt the first 0 are those of the main history, " +
			"which has more or others",
		"additional_histories[4]: of the 1 token ids of the prompt the first 1 are those of additional_histories[3], " +
			"which has more or others",
	})
	samples := tr.Samples()
	if len(samples) != 8 || r.Completions() != 8 {
		t.Fatalf("%d samples of %d completions", len(samples), r.Completions())
	}
	for i := range samples {
		if slices.Index(samples, samples[i]) != i {
			t.Error("a sample is in two places")
		}
	}
	if got := string(samples[1].PromptIDs); got != first+" two" {
		t.Errorf("prompt %q", got)
	}
	if replies[0].Message.Sample != samples[6] {
		t.Error("the sample that is recorded is not that of the reply")
	}
}

// A reply to token ids that comes after the end of a recording is an error, like any other.
func TestRecorder_LateTokens(t *testing.T) {
	m, r := registered(t, &arttest.Backend{}, nil), art.NewRecorder()
	ctx := r.Context(t.Context())
	samplePrompt(ctx, t, m, "one")
	r.Close()
	_, err := m.Sample(ctx, []rune("two"), nil, nil)
	wantErr(t, err, art.ErrRecordingEnded, "art: record: ")
	if n := r.Completions(); n != 1 {
		t.Errorf("%d completions", n)
	}
}

// Without a tokenizer the texts of prompts are not known; the ids are.
func TestRecorder_TokensWithoutTokenizer(t *testing.T) {
	type samplerOnly struct {
		art.Backend
		driver.Sampler
	}
	fake := &arttest.Backend{Reply: arttest.Script("x")}
	m, r := art.NewModel("m", nil), art.NewRecorder()
	if err := m.Register(t.Context(), samplerOnly{fake, fake}); err != nil {
		t.Fatal(err)
	}
	samplePrompt(r.Context(t.Context()), t, m, "one")
	tr := r.Close()
	wantEqual(t, "histories", histories(tr), [][]string{{"user:", "assistant:x*"}})
	wantEqual(t, "ids", tr.Samples()[0].PromptIDs, []rune("one"))
}
