package art_test

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"testing"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/internal/arttest"
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
