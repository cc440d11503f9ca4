package server

import (
	"encoding/json"
	"net/http"
	"reflect"
	"testing"

	"github.com/goart-dev/art"
)

// TestRoutes_OutputFormats checks that formats and tool choices of each API reach the backend.
func TestRoutes_OutputFormats(t *testing.T) {
	const schema = `{"type":"string"}`
	named := &art.ResponseFormat{Type: art.FormatJSONSchema, Name: "n", Schema: json.RawMessage(schema)}
	look := &art.ToolChoice{Mode: art.ToolNamed, Name: "look"}
	required := &art.ToolChoice{Mode: art.ToolRequired}
	chat := func(fields string) string {
		return hello(`, "tools": [{"type": "function", "function": {"name": "look"}}]` + fields)
	}
	responses := func(field string) string {
		return `{"model": "player", "input": "x", "tools": [{"type": "function", "name": "look"}], ` + field + `}`
	}
	messages := func(field string) string {
		return message(`, "tools": [{"name": "look", "input_schema": {}}], ` + field)
	}
	for _, c := range []struct {
		path, body string
		format     *art.ResponseFormat
		choice     *art.ToolChoice
	}{
		{"/v1/chat/completions", chat(`, "response_format": {"type": "json_object"}`), &art.ResponseFormat{Type: art.FormatJSONObject}, nil},
		{"/v1/chat/completions", chat(`, "response_format": {"type": "json_schema", "json_schema": {"name": "n", "strict": true, "schema": ` + schema + `}}`), named, nil},
		{"/v1/chat/completions", chat(`, "structured_outputs": {"json": "{\"type\":\"string\"}"}`), &art.ResponseFormat{Type: art.FormatJSONSchema, Schema: named.Schema}, nil},
		{"/v1/chat/completions", chat(`, "structured_outputs": {"regex": "a+", "grammar": null}`), &art.ResponseFormat{Type: art.FormatRegex, Regex: "a+"}, nil},
		{"/v1/chat/completions", chat(`, "structured_outputs": {"choice": ["a", "b"]}`), &art.ResponseFormat{Type: art.FormatChoice, Choice: []string{"a", "b"}}, nil},
		{"/v1/chat/completions", chat(`, "structured_outputs": {"json_object": true}`), &art.ResponseFormat{Type: art.FormatJSONObject}, nil},
		{"/v1/chat/completions", chat(`, "tool_choice": "required"`), nil, required},
		{"/v1/chat/completions", chat(`, "tool_choice": {"type": "function", "function": {"name": "look"}}, "parallel_tool_calls": false`), nil, look},
		{responsesPath, responses(`"text": {"format": {"type": "json_schema", "name": "n", "schema": ` + schema + `}}`), named, nil},
		{responsesPath, responses(`"text": {"format": {"type": "text"}, "verbosity": "medium"}`), nil, nil},
		{responsesPath, responses(`"tool_choice": {"type": "function", "name": "look"}`), nil, look},
		{"/v1/messages", messages(`"tool_choice": {"type": "any"}`), nil, required},
		{"/v1/messages", messages(`"tool_choice": {"type": "tool", "name": "look", "disable_parallel_tool_use": true}`), nil, look},
	} {
		b := reply(art.Message{Content: "Hi"})
		if w := postTo(newHandler(t, b), c.path, c.body); w.Code != http.StatusOK {
			t.Errorf("%s: status %d: %s", c.body, w.Code, w.Body)
			continue
		}
		s := b.last.Settings
		if !reflect.DeepEqual(s.ResponseFormat, c.format) || !reflect.DeepEqual(s.ToolChoice, c.choice) {
			t.Errorf("%s: got %+v and %+v", c.body, s.ResponseFormat, s.ToolChoice)
		}
	}
}
