package art_test

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/internal/dev/arttest"
)

// restricted returns the request that a backend gets.
func restricted(
	t *testing.T, defaults art.ChatOptions, o *art.ChatOptions, tools ...art.Tool,
) (*art.ChatRequest, error) {
	t.Helper()
	var got *art.ChatRequest
	b := &arttest.Backend{Reply: func(_ context.Context, _ *art.Model, req *art.ChatRequest) (art.Message, error) {
		got = req
		return art.Assistant("ok"), nil
	}}
	m := registered(t, b, &art.ModelOptions{Chat: defaults})
	_, err := m.Complete(t.Context(), &art.History{Messages: []art.Message{art.User("Hi")}, Tools: tools}, o)
	return got, err
}

// TestOutputFormat_Refused: formats and tool choices that contradict themselves or the request are invalid.
func TestOutputFormat_Refused(t *testing.T) {
	tool := art.Tool{Name: "look"}
	for want, o := range map[string]art.ChatOptions{
		"type is":       {ResponseFormat: &art.ResponseFormat{Type: "xml"}},
		"not JSON":      {ResponseFormat: &art.ResponseFormat{Type: art.FormatJSONSchema, Schema: json.RawMessage("{")}},
		"regex is":      {ResponseFormat: &art.ResponseFormat{Type: art.FormatRegex}},
		"choice is":     {ResponseFormat: &art.ResponseFormat{Type: art.FormatChoice}},
		"another type":  {ResponseFormat: &art.ResponseFormat{Type: art.FormatJSONObject, Regex: "a"}},
		"UTF-8":         {ResponseFormat: &art.ResponseFormat{Type: art.FormatRegex, Regex: "\xff"}},
		`is "any"`:      {ToolChoice: &art.ToolChoice{Mode: "any"}},
		"goes with":     {ToolChoice: &art.ToolChoice{Mode: art.ToolRequired, Name: "look"}},
		"not among the": {ToolChoice: &art.ToolChoice{Mode: art.ToolNamed, Name: "see"}},
		"exclude each other": {
			ResponseFormat: &art.ResponseFormat{Type: art.FormatJSONObject}, ToolChoice: &art.ToolChoice{Mode: art.ToolRequired},
		},
	} {
		_, err := restricted(t, art.ChatOptions{}, &o, tool)
		if !errors.Is(err, art.ErrInvalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v", want, err)
		}
	}
	_, err := restricted(t, art.ChatOptions{}, &art.ChatOptions{ToolChoice: &art.ToolChoice{Mode: art.ToolRequired}})
	if !errors.Is(err, art.ErrInvalid) {
		t.Errorf("required without tools: %v", err)
	}
}

// TestOutputFormat_Resolved: what restricts nothing is not in the settings, and with "none" the tools are not seen.
func TestOutputFormat_Resolved(t *testing.T) {
	defaults := art.ChatOptions{
		ResponseFormat: &art.ResponseFormat{Type: art.FormatJSONObject}, ToolChoice: &art.ToolChoice{Mode: art.ToolNone},
	}
	req, err := restricted(t, defaults, nil, art.Tool{Name: "look"})
	if err != nil || req.Tools != nil || req.Settings.ToolChoice != nil || req.Settings.ResponseFormat == nil {
		t.Fatalf("%v, %+v", err, req)
	}
	req, err = restricted(t, defaults, &art.ChatOptions{
		ResponseFormat: &art.ResponseFormat{Type: art.FormatText}, ToolChoice: &art.ToolChoice{Mode: art.ToolAuto},
	}, art.Tool{Name: "look"})
	if err != nil || len(req.Tools) != 1 || req.Settings.Restricts() || req.Settings.Reshapes() {
		t.Fatalf("%v, %+v", err, req)
	}
}

// TestOutputFormat_JSON: settings of a request are stored as they are, schemas byte for byte.
func TestOutputFormat_JSON(t *testing.T) {
	schema := json.RawMessage("{ \"pattern\": \"<a> & b\",\n \"type\": \"string\" }")
	for _, o := range []art.ChatOptions{
		{ResponseFormat: &art.ResponseFormat{Type: art.FormatJSONSchema, Name: "n", Schema: schema}},
		{ResponseFormat: &art.ResponseFormat{Type: art.FormatChoice, Choice: []string{"<", ""}}},
		{ToolChoice: &art.ToolChoice{Mode: art.ToolNamed, Name: "look"}},
	} {
		req, err := restricted(t, art.ChatOptions{}, &o, art.Tool{Name: "look"})
		if err != nil || !req.Settings.Reshapes() {
			t.Fatal(err, req)
		}
		text, err := json.Marshal(req.Settings)
		var read art.Sampling
		if err == nil {
			err = json.Unmarshal(text, &read)
		}
		if err != nil || !reflect.DeepEqual(read, req.Settings) {
			t.Fatalf("%v: %s", err, text)
		}
	}
}
