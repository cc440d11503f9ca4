package server

import (
	"net/http"
	"reflect"
	"strings"
	"testing"

	"github.com/goart-dev/art"
)

// TestRoutes_Settings checks that every field that shapes the reply reaches the backend.
func TestRoutes_Settings(t *testing.T) {
	defaults := art.Sampling{Temperature: 1, TopP: 1, Seed: 1}
	with := func(change func(*art.Sampling)) art.Sampling {
		s := defaults
		change(&s)
		return s
	}
	cases := []struct {
		fields string
		want   art.Sampling
	}{
		{``, defaults},
		{`, "temperature": 0, "top_p": 0.5`, with(func(s *art.Sampling) { s.Temperature, s.TopP = 0, 0.5 })},
		{`, "top_k": 40`, with(func(s *art.Sampling) { s.TopK = 40 })},
		{`, "top_k": -1`, defaults},
		{`, "max_tokens": 9`, with(func(s *art.Sampling) { s.MaxTokens = 9 })},
		{`, "max_completion_tokens": 8`, with(func(s *art.Sampling) { s.MaxTokens = 8 })},
		{`, "max_tokens": 8, "max_completion_tokens": 8`, with(func(s *art.Sampling) { s.MaxTokens = 8 })},
		{`, "stop": "END"`, with(func(s *art.Sampling) { s.Stop = []string{"END"} })},
		{`, "stop": ["a", "b"]`, with(func(s *art.Sampling) { s.Stop = []string{"a", "b"} })},
		{`, "seed": 18446744073709551615`, with(func(s *art.Sampling) { s.Seed = 1<<64 - 1 })},
		{`, "seed": -1`, with(func(s *art.Sampling) { s.Seed = 1<<64 - 1 })},
		{`, "temperature": null, "stop": null, "max_tokens": null, "n": null, "logit_bias": null, "tool_choice": null`, defaults},
		{`, "n": 1, "presence_penalty": 0.0, "response_format": {"type": "text"}`, defaults},
		{`, "presence_penalty": -2, "frequency_penalty": 0.5, "repetition_penalty": 1.1, "min_p": 0.05`, with(func(s *art.Sampling) {
			s.PresencePenalty, s.FrequencyPenalty, s.RepetitionPenalty, s.MinP = -2, 0.5, 1.1, 0.05
		})},
		{`, "logit_bias": {"7": -100, "12": 1.5}, "min_tokens": 3, "stop_token_ids": [4, 5]`, with(func(s *art.Sampling) {
			s.LogitBias, s.MinTokens, s.StopTokenIDs = map[int32]float64{7: -100, 12: 1.5}, 3, []int32{4, 5}
		})},
		{`, "allowed_token_ids": [4, 9], "bad_words": ["no", " never"], "ignore_eos": true`, with(func(s *art.Sampling) {
			s.AllowedTokenIDs, s.BadWords, s.IgnoreEOS = []int32{4, 9}, []string{"no", " never"}, true
		})},
		{`, "ignore_eos": false, "allowed_token_ids": null, "vllm_xargs": {}, "mm_processor_kwargs": null`, defaults},
		{`, "logit_bias": {}, "stop_token_ids": []`, with(func(s *art.Sampling) {
			s.LogitBias, s.StopTokenIDs = map[int32]float64{}, []int32{}
		})},
		{`, "logprobs": true, "top_logprobs": 4`, with(func(s *art.Sampling) { s.TopLogprobs = 4 })},
		{`, "user": "u", "metadata": {"a": "b"}, "store": true, "service_tier": "auto", "something_new": [1]`, defaults},
	}
	for _, c := range cases {
		t.Run(c.fields, func(t *testing.T) {
			b := reply(art.Message{Content: "Hi"})
			fields := c.fields
			if !strings.Contains(fields, `"seed"`) {
				fields += `, "seed": 1`
			}
			if w := post(newHandler(t, b), hello(fields)); w.Code != http.StatusOK {
				t.Fatalf("status %d: %s", w.Code, w.Body)
			}
			if got := b.last.Settings; !reflect.DeepEqual(got, c.want) {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
}

// TestRoutes_TemplateArgs checks that chat_template_kwargs reach the backend.
func TestRoutes_TemplateArgs(t *testing.T) {
	for fields, want := range map[string]string{
		``:                               "",
		`, "chat_template_kwargs": null`: "",
		`, "chat_template_kwargs": {}`:   "",
		`, "chat_template_kwargs": {"enable_thinking": false, "documents": [{"b": 1, "a": 2}]}`: `{"documents":[{"b":1,"a":2}],"enable_thinking":false}`,
	} {
		b := reply(art.Message{Content: "Hi"})
		if w := post(newHandler(t, b), hello(fields)); w.Code != http.StatusOK {
			t.Fatalf("status %d: %s", w.Code, w.Body)
		}
		if got := string(b.last.TemplateArgs); got != want {
			t.Errorf("%s: got %s, want %s", fields, got, want)
		}
	}
}

// TestRoutes_HistoryKept checks that messages and tools reach the backend unchanged, and that tool_choice "none" hides
// the tools.
func TestRoutes_HistoryKept(t *testing.T) {
	body := `{"model": "player",
		"tools": [{"type": "function", "function": {"name": "look", "parameters": {"z": 1, "a": 2}}}],
		"messages": [
			{"role": "user", "content": "Look"},
			{"role": "assistant", "content": null, "tool_calls": [
				{"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{\"at\": 1}"}}]},
			{"role": "tool", "tool_call_id": "c1",
				"content": [{"type": "text", "text": "a "}, {"type": "text", "text": "wall"}]}]`
	b := reply(art.Message{Content: "A wall."})
	h := newHandler(t, b)
	if w := post(h, body+`, "tool_choice": "auto"}`); w.Code != http.StatusOK {
		t.Fatalf("status %d: %s", w.Code, w.Body)
	}
	got := b.last.Tools
	if len(got) != 1 || got[0].Name != "look" || !strings.Contains(string(got[0].Parameters), `"z":1,"a":2`) {
		t.Errorf("tools are %+v", got)
	}
	m := b.last.Messages
	if len(m) != 3 || m[1].ToolCalls[0].Arguments != `{"at": 1}` || m[2].ToolCallID != "c1" || m[2].Content != "a wall" {
		t.Errorf("messages are %+v", m)
	}
	if w := post(h, body+`, "tool_choice": "none"}`); w.Code != http.StatusOK || len(b.last.Tools) != 0 {
		t.Errorf("tool_choice none: status %d, tools %+v", w.Code, b.last.Tools)
	}
}
