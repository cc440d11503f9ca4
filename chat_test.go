package art_test

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"testing"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/internal/dev/arttest"
)

func TestModel_Chat(t *testing.T) {
	m := registered(t, &arttest.Backend{Reply: arttest.Script("one", "two")}, nil)
	tr := art.NewTrajectory(art.System("s"), art.User("u"))
	first, err := m.Chat(t.Context(), tr, nil)
	if err != nil || first.Content != "one" || first.Sample == nil {
		t.Fatalf("reply %+v, error %v", first, err)
	}
	first.Content = "edited" // a copy
	tr.Add(art.User("and?"))
	if _, err := m.Chat(t.Context(), tr, nil); err != nil {
		t.Fatal(err)
	}
	var texts []string
	for _, message := range tr.Messages {
		texts = append(texts, message.Content)
	}
	wantEqual(t, "conversation", texts, []string{"s", "u", "one", "and?", "two"})
	if len(tr.Samples()) != 2 || tr.Messages[2].Sample != first.Sample {
		t.Errorf("%d samples", len(tr.Samples()))
	}
	_, err = m.Chat(t.Context(), nil, nil)
	wantErr(t, err, art.ErrInvalid, "trajectory is nil")
}

// An error leaves the trajectory unchanged.
func TestModel_ChatFails(t *testing.T) {
	boom := errors.New("boom")
	m := registered(t, &arttest.Backend{Reply: func(context.Context, *art.Model, *art.ChatRequest) (art.Message, error) {
		return art.Message{}, boom
	}}, nil)
	tr := art.NewTrajectory(art.User("u"))
	reply, err := m.Chat(t.Context(), tr, nil)
	if err != boom || reply != nil || len(tr.Messages) != 1 { //nolint:errorlint // it is returned unwrapped
		t.Errorf("reply %v, error %v, %d messages", reply, err, len(tr.Messages))
	}
}

func TestModel_CompleteSettings(t *testing.T) {
	var got art.Sampling
	fake := &arttest.Backend{Reply: func(_ context.Context, _ *art.Model, req *art.ChatRequest) (art.Message, error) {
		got = req.Settings
		return art.Assistant("x"), nil
	}}
	history := &art.History{Messages: []art.Message{art.User("u")}}
	ask := func(t *testing.T, defaults art.ChatOptions, opts *art.ChatOptions) art.Sampling {
		t.Helper()
		*fake = arttest.Backend{Reply: fake.Reply}
		m := registered(t, fake, &art.ModelOptions{Chat: defaults})
		if _, err := m.Complete(t.Context(), history, opts); err != nil {
			t.Fatal(err)
		}
		return got
	}
	seeded := art.ChatOptions{Seed: ptr(uint64(0))}
	wantEqual(t, "defaults", ask(t, seeded, nil), art.Sampling{Temperature: 1, TopP: 1})
	model := art.ChatOptions{
		Temperature: ptr(0.0), TopP: ptr(0.5), TopK: ptr(2), MaxTokens: ptr(3), Stop: []string{"a"}, Seed: ptr(uint64(4)),
	}
	of := art.Sampling{Temperature: 0, TopP: 0.5, TopK: 2, MaxTokens: 3, Stop: []string{"a"}, Seed: 4}
	wantEqual(t, "of the model", ask(t, model, nil), of)
	wantEqual(t, "of the model, call without", ask(t, model, &art.ChatOptions{}), of)
	call := &art.ChatOptions{
		Temperature: ptr(2.0), TopP: ptr(1.0), TopK: ptr(0), MaxTokens: ptr(0), Stop: []string{}, Seed: ptr(uint64(5)),
	}
	wantEqual(t, "of the call", ask(t, model, call), art.Sampling{Temperature: 2, TopP: 1, Stop: []string{}, Seed: 5})
}

// The options that are off by default override one another like the others, and the request shares no memory with them.
func TestModel_CompleteShape(t *testing.T) {
	var got art.Sampling
	fake := &arttest.Backend{Reply: func(_ context.Context, _ *art.Model, req *art.ChatRequest) (art.Message, error) {
		got = req.Settings
		return art.Assistant("x"), nil
	}}
	defaults := art.ChatOptions{
		Seed: ptr(uint64(1)), MinP: ptr(0.1), RepetitionPenalty: ptr(1.1), PresencePenalty: ptr(-2.0),
		FrequencyPenalty: ptr(2.0), LogitBias: map[int32]float64{3: 100}, MinTokens: ptr(4), StopTokenIDs: []int32{5},
		TopLogprobs: ptr(20), PromptLogprobs: ptr(0),
	}
	m := registered(t, fake, &art.ModelOptions{Chat: defaults})
	defaults.LogitBias[3], defaults.StopTokenIDs[0], *defaults.PromptLogprobs = 0, 0, 9
	h := &art.History{Messages: []art.Message{art.User("u")}}
	of := art.Sampling{
		Temperature: 1, TopP: 1, Seed: 1, MinP: 0.1, RepetitionPenalty: 1.1, PresencePenalty: -2, FrequencyPenalty: 2,
		LogitBias: map[int32]float64{3: 100}, MinTokens: 4, StopTokenIDs: []int32{5}, TopLogprobs: 20, PromptLogprobs: ptr(0),
	}
	off := art.Sampling{
		Temperature: 1, TopP: 1, Seed: 1, RepetitionPenalty: 1, LogitBias: map[int32]float64{}, StopTokenIDs: []int32{},
		PromptLogprobs: ptr(1),
	}
	for name, c := range map[string]struct {
		opts *art.ChatOptions
		want art.Sampling
	}{
		"of the model": {nil, of},
		"of the call": {&art.ChatOptions{
			MinP: ptr(0.0), RepetitionPenalty: ptr(1.0), PresencePenalty: ptr(0.0), FrequencyPenalty: ptr(0.0),
			LogitBias: map[int32]float64{}, MinTokens: ptr(0), StopTokenIDs: []int32{}, TopLogprobs: ptr(0), PromptLogprobs: ptr(1),
		}, off},
	} {
		if _, err := m.Complete(t.Context(), h, c.opts); err != nil {
			t.Fatal(err)
		}
		wantEqual(t, name, got, c.want)
	}
	if !of.Reshapes() || off.Reshapes() {
		t.Errorf("%+v reshapes %v, %+v %v", of, of.Reshapes(), off, off.Reshapes())
	}
}

// Each value outside of its range is refused by name.
func TestSampling_ValidateShape(t *testing.T) {
	for want, s := range map[string]art.Sampling{
		"min_p is -0.1":                        {MinP: -0.1},
		"min_p is NaN":                         {MinP: math.NaN()},
		"min_p is 1.5":                         {MinP: 1.5},
		"repetition_penalty is -1":             {RepetitionPenalty: -1},
		"repetition_penalty is +Inf":           {RepetitionPenalty: math.Inf(1)},
		"presence_penalty is 2.5":              {PresencePenalty: 2.5},
		"frequency_penalty is NaN":             {FrequencyPenalty: math.NaN()},
		"logit_bias of token 3 is 101":         {LogitBias: map[int32]float64{3: 101}},
		"logit_bias of token -3 is 1":          {LogitBias: map[int32]float64{-3: 1}},
		"min_tokens is -1":                     {MinTokens: -1},
		"min_tokens is 3, above max_tokens, 2": {MinTokens: 3, MaxTokens: 2},
		"a stop token id is negative":          {StopTokenIDs: []int32{1, -1}},
		"top_logprobs is 21, want 0 to 20":     {TopLogprobs: 21},
		"prompt_logprobs is -1":                {PromptLogprobs: ptr(-1)},
	} {
		s.Temperature, s.TopP = 1, 1
		wantErr(t, s.Validate(), art.ErrInvalid, want)
	}
}

// The variables of the chat template are those of the model, overridden by those of the call.
func TestModel_CompleteTemplateArgs(t *testing.T) {
	var got json.RawMessage
	fake := &arttest.Backend{Reply: func(_ context.Context, _ *art.Model, req *art.ChatRequest) (art.Message, error) {
		got = req.TemplateArgs
		return art.Assistant("x"), nil
	}}
	m := registered(t, fake, &art.ModelOptions{
		Chat: art.ChatOptions{TemplateArgs: json.RawMessage(`{"a": 1, "b": {"z": 1, "y": 2}}`)},
	})
	h := &art.History{Messages: []art.Message{art.User("x")}}
	for args, want := range map[string]string{``: `{"a":1,"b":{"z":1,"y":2}}`, `null`: `{"a":1,"b":{"z":1,"y":2}}`,
		`{"b": false, "c": []}`: `{"a":1,"b":false,"c":[]}`} {
		if _, err := m.Complete(t.Context(), h, &art.ChatOptions{TemplateArgs: json.RawMessage(args)}); err != nil {
			t.Fatal(err)
		}
		wantEqual(t, "variables of "+args, string(got), want)
	}
	for _, args := range []string{`[]`, `{`, `1`} {
		if _, err := m.Complete(t.Context(), h, &art.ChatOptions{TemplateArgs: json.RawMessage(args)}); !errors.Is(err,
			art.ErrInvalid) {
			t.Errorf("%s: error %v", args, err)
		}
		err := art.NewModel("m",
			&art.ModelOptions{Chat: art.ChatOptions{TemplateArgs: json.RawMessage(args)}}).Register(t.Context(),
			&arttest.Backend{})
		if !errors.Is(err, art.ErrInvalid) {
			t.Errorf("%s as a default: error %v", args, err)
		}
	}
}

func TestModel_CompleteInvalid(t *testing.T) {
	m := registered(t, &arttest.Backend{}, nil)
	cases := []struct {
		history *art.History
		opts    *art.ChatOptions
		say     string
	}{
		{nil, nil, "no messages"},
		{&art.History{}, nil, "no messages"},
		{&art.History{Messages: []art.Message{art.User("u"), {Content: "x"}}}, nil, "messages[1].role is empty"},
		{&art.History{Messages: []art.Message{art.User("u")}}, &art.ChatOptions{Temperature: ptr(math.Inf(1))}, "temperature is +Inf"},
		{&art.History{Messages: []art.Message{art.User("u")}}, &art.ChatOptions{TopP: ptr(math.NaN())}, "top_p is NaN"},
	}
	for _, c := range cases {
		_, err := m.Complete(t.Context(), c.history, c.opts)
		wantErr(t, err, art.ErrInvalid, c.say)
	}
}

// A backend may keep a request: it does not share memory with the caller's history.
func TestModel_CompleteCopies(t *testing.T) {
	var kept *art.ChatRequest
	m := registered(t, &arttest.Backend{Reply: func(
		_ context.Context, _ *art.Model, req *art.ChatRequest,
	) (art.Message, error) {
		kept = req
		return art.Assistant("x"), nil
	}}, nil)
	h := &art.History{
		Messages: []art.Message{{Role: art.RoleAssistant, ToolCalls: []art.ToolCall{{Name: "f"}}}},
		Tools:    []art.Tool{{Name: "f", Parameters: []byte(`{}`)}},
	}
	if _, err := m.Complete(t.Context(), h, nil); err != nil {
		t.Fatal(err)
	}
	h.Messages[0].ToolCalls[0].Name, h.Messages[0].Content, h.Tools[0].Name, h.Tools[0].Parameters[0] = "changed",
		"changed", "changed", '['
	if kept.Messages[0].ToolCalls[0].Name != "f" || kept.Messages[0].Content != "" || kept.Tools[0].Name != "f" ||
		string(kept.Tools[0].Parameters) != "{}" {
		t.Errorf("the request changed: %+v", kept)
	}
}
