package backendtest

import (
	"bytes"
	"errors"
	"slices"
	"strings"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/driver"
)

// testStateKeeper checks that state is merged key by key, and belongs to one model.
func testStateKeeper(t *subtest, b art.Backend) {
	optional[driver.StateKeeper](t, b)
	m := register(t, b, nil)
	var state struct {
		Data struct{ File, Line string }
	}
	if found, err := m.LoadState(t.Context(), &state); err != nil || found {
		t.Fatalf("LoadState of a new run: %v, %v", found, err)
	}
	for _, patch := range []map[string]any{{"data": map[string]any{"file": "a", "line": "1"}},
		{"data": map[string]any{"line": "2"}}} {
		must(t, "SaveState", m.SaveState(t.Context(), patch))
	}
	found, err := m.LoadState(t.Context(), &state)
	if err != nil || !found {
		t.Fatalf("LoadState: %v, %v", found, err)
	}
	if state.Data.File != "a" || state.Data.Line != "2" {
		t.Errorf("state is %+v, want file a and line 2: patches are merged", state.Data)
	}
	wantError(t, "SaveState of a function", m.SaveState(t.Context(), func() {}), art.ErrInvalid)
	other := describe(t, "-other", nil)
	must(t, "Register", other.Register(t.Context(), b))
	if found, err := other.LoadState(t.Context(), &state); err != nil || found {
		t.Errorf("LoadState of another model: %v, %v", found, err)
	}
}

// testRestorer checks that going back makes a new step, and deletes nothing.
func testRestorer(t *subtest, b art.Backend) {
	keeper := optional[driver.CheckpointKeeper](t, b)
	optional[driver.CheckpointRestorer](t, b)
	m := register(t, b, nil)
	for range 2 {
		_, err := m.Train(t.Context(), gather(t, m, 1), nil)
		must(t, "Train", err)
	}
	next, err := m.Restore(t.Context(), 1)
	must(t, "Restore", err)
	if next != 3 {
		t.Errorf("Restore made step %d, want 3", next)
	}
	wantCheckpoints(t, keeper, m, 1, 2, 3)
	wantServed(t, m, 3)
	_, err = m.Restore(t.Context(), 99)
	wantError(t, "Restore of a step that there is not", err, art.ErrInvalid)
	wantStep(t, m, 3)
}

// testSampler checks that an answer that the model gave has the same sample when it is given to it.
func testSampler(t *subtest, b art.Backend) {
	optional[driver.Tokenizer](t, b)
	optional[driver.Sampler](t, b)
	m := register(t, b, nil)
	chat := ask("What is the colour of the sky?")
	forced := art.NewTrajectory(chat.Messages...)
	_, err := m.Force(t.Context(), forced, art.Assistant("Blue"), nil)
	must(t, "Force", err)
	s := forced.Messages[len(forced.Messages)-1].Sample
	own := sampled(t, m, "What is the colour of the sky?", nil)
	if want := own.PromptIDs; !slices.Equal(s.PromptIDs, want) {
		t.Errorf("prompt ids are %v, want those of a completion, %v", s.PromptIDs, want)
	}
	if len(s.IDs) == 0 || len(s.Logprobs) != len(s.IDs) {
		t.Fatalf("%d ids and %d logprobs", len(s.IDs), len(s.Logprobs))
	}
	for i, lp := range s.Logprobs {
		if lp > 0 {
			t.Errorf("logprob %d is %v", i, lp)
		}
	}
	sampler := b.(driver.Sampler)
	all := append(slices.Clone(own.PromptIDs), own.IDs...)
	logprobs, step, err := sampler.Logprobs(t.Context(), m, all)
	must(t, "Logprobs", err)
	if step != 0 || len(logprobs) != len(all)-1 {
		t.Fatalf("%d logprobs of step %d, want %d of step 0", len(logprobs), step, len(all)-1)
	}
	got := logprobs[len(own.PromptIDs)-1:]
	for i, want := range own.Logprobs {
		if diff := got[i] - want; diff > 0.05 || diff < -0.05 {
			t.Errorf("logprob %d is %v, and was %v when it was sampled", i, got[i], want)
		}
	}
}

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
