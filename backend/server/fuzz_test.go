package server

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/internal/arttest"
)

// fuzzBodies are seeds for all APIs.
var fuzzBodies = []string{
	hello(``), hello(`, "stream": true, "tools": [{"type": "function", "function": {"name": "look"}}]`),
	hello(`, "logprobs": true, "return_token_ids": true, "prompt_logprobs": 0, "seed": -1, "stop": ["a", "b"]`),
	message(`, "stream": true, "system": [{"type": "text", "text": "x"}], "thinking": {"type": "disabled"}`),
	message(`, "messages": [{"role": "assistant", "content": [
		{"type": "tool_use", "id": "c", "name": "n", "input": {"_raw": "x"}}]}, {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c", "content": [{"type": "text", "text": "y"}]}]}]`),
	`{"model": "player", "input": "Hello", "include": ["message.output_text.logprobs"], "stream": true}`,
	`{"model": "player", "input": [{"type": "reasoning", "summary": []}, {"role": "assistant", "content": "x"},
		{"type": "function_call", "call_id": "c", "name": "n", "arguments": "{}"},
		{"type": "function_call_output", "call_id": "c", "output": [{"type": "input_text", "text": "y"}]}]}`,
	`{"model": "player", "prompt": [[1, 2]], "logprobs": 0, "return_tokens_as_token_ids": true, "stream": true}`,
	`{"token_ids": [1, 2], "sampling_params": {"logprobs": 0, "max_tokens": 3}, "output_mode": "text"}`,
	`{"prompt": "x", "return_token_strs": true}`, `{"tokens": [1, 2]}`,
	`{"messages": null, "input": null, "prompt": null, "system": null, "tools": null, "token_ids": null}`,
	`[]`, `{"messages": [null], "input": [null], "tools": [null], "prompt": [null]}`, `{"model": 5, "stream": "x"}`,
}

// FuzzBodies sends a body to every API. Whatever it is, the answer is a reply or an error of the request in the form of
// the API, and each event of a stream is whole.
func FuzzBodies(f *testing.F) {
	for _, body := range fuzzBodies {
		f.Add(body)
	}
	fake := &arttest.Backend{}
	m := art.NewModel("player", nil)
	if err := m.Register(f.Context(), fake); err != nil {
		f.Fatal(err)
	}
	h := Routes(func() []*art.Model { return []*art.Model{m} }, &Config{
		Tokens: func(_ *art.Model, id int32) []byte { return []byte(string(id)) },
	})
	f.Fuzz(func(t *testing.T, body string) {
		for _, path := range []string{
			"/v1/chat/completions", completionsPath, responsesPath, messagesPath, messagesPath + "/count_tokens",
			"/tokenize", "/detokenize", "/inference/v1/generate",
		} {
			checkAnswer(t, path, postTo(h, path, body))
		}
	})
}

// checkAnswer checks the form of an answer.
func checkAnswer(t *testing.T, path string, w *httptest.ResponseRecorder) {
	t.Helper()
	text := w.Body.String()
	if w.Header().Get("Content-Type") == "text/event-stream" {
		for event := range strings.SplitSeq(strings.TrimSuffix(text, "\n\n"), "\n\n") {
			_, data, ok := strings.Cut(event, "data: ")
			if !ok || data != "[DONE]" && !json.Valid([]byte(data)) {
				t.Errorf("%s: event %s", path, event)
			}
		}
		return
	}
	var read struct {
		Type  string
		Error struct{ Message, Type string }
	}
	if err := json.Unmarshal([]byte(text), &read); err != nil {
		t.Fatalf("%s: %v: %s", path, err, text)
	}
	isError := w.Code != http.StatusOK
	if w.Code >= http.StatusInternalServerError || isError != (read.Error.Message != "") {
		t.Errorf("%s: status %d: %s", path, w.Code, text)
	}
	if isError && strings.HasPrefix(path, messagesPath) != (read.Type == "error") {
		t.Errorf("%s: the form of the error is %s", path, text)
	}
}
