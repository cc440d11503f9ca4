package openai_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/openai"
)

// TestComplete_OutputFormats: formats and tool choices are sent on, in the fields of OpenAI or of vLLM.
func TestComplete_OutputFormats(t *testing.T) {
	schema := json.RawMessage(`{"type":"string"}`)
	for _, c := range []struct {
		opts        art.ChatOptions
		field, want string
	}{
		{art.ChatOptions{ResponseFormat: &art.ResponseFormat{Type: art.FormatJSONObject}},
			"response_format", `{"type":"json_object"}`},
		{art.ChatOptions{ResponseFormat: &art.ResponseFormat{Type: art.FormatJSONSchema, Schema: schema}},
			"response_format", `{"type":"json_schema","json_schema":{"name":"reply","schema":{"type":"string"},"strict":true}}`},
		{art.ChatOptions{ResponseFormat: &art.ResponseFormat{Type: art.FormatRegex, Regex: "a+"}},
			"structured_outputs", `{"regex":"a+"}`},
		{art.ChatOptions{ResponseFormat: &art.ResponseFormat{Type: art.FormatChoice, Choice: []string{"a"}}},
			"structured_outputs", `{"choice":["a"]}`},
		{art.ChatOptions{}, "response_format", ""},
		{art.ChatOptions{}, "tool_choice", ""},
	} {
		s := newServer(t, said("Hi."))
		if _, err := complete(t, register(t, open(t, s, openai.Options{}), "m"), &c.opts); err != nil {
			t.Fatal(err)
		}
		if got := s.field(c.field); got != c.want {
			t.Errorf("%s is %s, want %s", c.field, got, c.want)
		}
	}
}

// TestComplete_ToolChoice: a named tool is sent on, and an unknown one refused.
func TestComplete_ToolChoice(t *testing.T) {
	s := newServer(t, said("Hi."))
	m := register(t, open(t, s, openai.Options{}), "m")
	h := &art.History{Messages: []art.Message{art.User("Hi")}, Tools: []art.Tool{{Name: "look"}}}
	choice := &art.ToolChoice{Mode: art.ToolNamed, Name: "look"}
	if _, err := m.Complete(t.Context(), h, &art.ChatOptions{ToolChoice: choice}); err != nil {
		t.Fatal(err)
	}
	if got := s.field("tool_choice"); got != `{"type":"function","function":{"name":"look"}}` {
		t.Errorf("tool_choice is %s", got)
	}
	_, err := m.Complete(t.Context(), h, &art.ChatOptions{ToolChoice: &art.ToolChoice{Mode: art.ToolNamed, Name: "x"}})
	if !errors.Is(err, art.ErrInvalid) || !strings.Contains(err.Error(), `"x"`) {
		t.Errorf("got %v", err)
	}
}
