package backendtest

import (
	"slices"

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
