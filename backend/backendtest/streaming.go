package backendtest

import (
	"bytes"
	"errors"
	"slices"
	"strings"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/driver"
)

// testStreamer checks that the pieces of a reply together are the reply of Complete, and that an error ends them.
func testStreamer(t *subtest, b art.Backend) {
	optional[driver.Streamer](t, b)
	m := register(t, b, nil)
	response := complete(t, m, "Hello?", seeded(5))
	want := response.Message
	var got art.Message
	var s art.Sample
	_, err := m.Stream(t.Context(), ask("Hello?"), seeded(5), func(p art.Piece) error {
		if p.ID == "" || p.Model != m.Name()+"@0" {
			t.Errorf("a piece of the response %q of model %q", p.ID, p.Model)
		}
		got.Content += p.Content
		got.Reasoning += p.Reasoning
		got.ToolCalls = append(got.ToolCalls, p.ToolCalls...)
		s.PromptIDs, s.IDs = append(s.PromptIDs, p.PromptIDs...), append(s.IDs, p.IDs...)
		s.Logprobs = append(s.Logprobs, p.Logprobs...)
		return nil
	})
	must(t, "Stream", err)
	if got.Content != want.Content || got.Reasoning != want.Reasoning || len(got.ToolCalls) != len(want.ToolCalls) {
		t.Errorf("pieces are %q after %q, the reply is %q after %q", got.Content, got.Reasoning, want.Content, want.Reasoning)
	}
	checkPieces(t, &s, sampleOf(t, response))
	gone := errors.New("the reader has gone")
	if _, err := m.Stream(t.Context(), ask("Hello?"), nil, func(art.Piece) error { return gone }); !errors.Is(err, gone) {
		t.Errorf("a piece failed and the error is %v, want %v", err, gone)
	}
}

// checkPieces compares the joined tokens of pieces with a sample.
func checkPieces(t *subtest, got, want *art.Sample) {
	t.Helper()
	if !slices.Equal(got.PromptIDs, want.PromptIDs) {
		t.Errorf("prompt ids of pieces are %v, want %v once", got.PromptIDs, want.PromptIDs)
	}
	if !slices.Equal(got.IDs, want.IDs) || !slices.Equal(got.Logprobs, want.Logprobs) {
		t.Errorf("pieces have ids %v with logprobs %v, want %v with %v", got.IDs, got.Logprobs, want.IDs, want.Logprobs)
	}
}

// testSampleIDs checks that a prompt of ids gets the reply of the conversation that it is.
func testSampleIDs(t *subtest, b art.Backend) {
	optional[driver.Sampler](t, b)
	m := register(t, b, nil)
	want := complete(t, m, "Hello?", seeded(5))
	var s art.Sample
	text := ""
	sample := sampleOf(t, want)
	got, err := m.Sample(t.Context(), sample.PromptIDs, seeded(5), func(p art.Piece) error {
		s.PromptIDs, s.IDs = append(s.PromptIDs, p.PromptIDs...), append(s.IDs, p.IDs...)
		s.Logprobs = append(s.Logprobs, p.Logprobs...)
		text += p.Content
		return nil
	})
	must(t, "Sample", err)
	checkPieces(t, sampleOf(t, got), sample)
	checkPieces(t, &s, got.Message.Sample)
	if text != got.Message.Content || got.Finish != want.Finish {
		t.Errorf("pieces %q, text %q, finish %q, want %q", text, got.Message.Content, got.Finish, want.Finish)
	}
	_, err = m.Sample(t.Context(), nil, nil, nil)
	wantError(t, "Sample without a prompt", err, art.ErrInvalid)
}

func testTokenizer(t *subtest, b art.Backend) {
	tokenizer := optional[driver.Tokenizer](t, b)
	m := register(t, b, nil)
	const text = "The sky is blue.\nIs it?"
	ids, err := tokenizer.Encode(t.Context(), m, text, false)
	if err != nil || len(ids) == 0 {
		t.Fatalf("Encode: %d ids, error %v", len(ids), err)
	}
	if got, err := tokenizer.Decode(t.Context(), m, ids); err != nil || got != text {
		t.Errorf("decoded %q, error %v, want %q", got, err, text)
	}
	tokens, err := tokenizer.TokenBytes(t.Context(), m, ids)
	got := string(bytes.Join(tokens, nil)) // some tokenizers begin a text with a space
	if err != nil || len(tokens) != len(ids) || strings.TrimLeft(got, " ") != text {
		t.Errorf("the bytes of %d tokens are %q, error %v, want %q", len(tokens), got, err, text)
	}
}
