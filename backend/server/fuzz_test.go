package server

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/internal/dev/arttest"
)

// The fuzz targets send a body to one API each. Whatever it is, the answer is a reply or an error of the request in the
// form of the API, and each event of a stream is whole.

func FuzzChat(f *testing.F) {
	fuzzBodies(f, "/v1/chat/completions", hello(``),
		hello(`, "stream": true, "n": 3, "tools": [{"type": "function", "function": {"name": "look"}}]`),
		hello(`, "logprobs": true, "top_logprobs": 2, "return_token_ids": true, "prompt_logprobs": 1`),
		hello(`, "seed": -1, "stop": ["a", "b"], "min_tokens": 1, "stop_token_ids": [1]`),
		hello(`, "response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": {"type": "object"}}}`),
		hello(`, "structured_outputs": {"choice": ["a"]}, "logit_bias": {"1": 2}, "chat_template_kwargs": {"a": [1]}`),
		`{"messages": null, "tools": null}`, `[]`, `{"messages": [null], "tools": [null]}`, `{"model": 5, "stream": "x"}`)
}

func FuzzCompletions(f *testing.F) {
	fuzzBodies(f, completionsPath,
		`{"model": "player", "prompt": [[1, 2]], "logprobs": 0, "return_tokens_as_token_ids": true, "stream": true}`,
		`{"model": "player", "prompt": ["a", "b"], "logprobs": 2, "echo": true, "n": 2, "best_of": 1}`,
		`{"model": "player", "prompt": [97, 98], "prompt_logprobs": 1, "return_token_ids": true}`, `{"prompt": null}`,
		`{"prompt": [null]}`)
}

func FuzzResponses(f *testing.F) {
	fuzzBodies(f, responsesPath,
		`{"model": "player", "input": "Hello", "include": ["message.output_text.logprobs"], "stream": true}`,
		`{"model": "player", "input": [{"type": "reasoning", "summary": []}, {"role": "assistant", "content": "x"},
		{"type": "function_call", "call_id": "c", "name": "n", "arguments": "{}"},
		{"type": "function_call_output", "call_id": "c", "output": [{"type": "input_text", "text": "y"}]}]}`,
		`{"model": "player", "input": "x", "text": {"format": {"type": "json_object"}}, "tools": [{"type": "function"}]}`,
		`{"input": null}`, `{"input": [null]}`)
}

func FuzzMessages(f *testing.F) {
	for _, path := range []string{messagesPath, messagesPath + "/count_tokens"} {
		f.Add(path, message(`, "stream": true, "system": [{"type": "text", "text": "x"}], "thinking": {"type": "disabled"}`))
		f.Add(path, message(`, "messages": [{"role": "assistant", "content": [
			{"type": "tool_use", "id": "c", "name": "n", "input": {"_raw": "x"}}]}, {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c", "content": [{"type": "text", "text": "y"}]}]}]`))
		f.Add(path, `{"messages": null, "system": null, "tools": null}`)
	}
	h := fuzzed(f)
	f.Fuzz(func(t *testing.T, path, body string) {
		if path != messagesPath {
			path = messagesPath + "/count_tokens"
		}
		checkAnswer(t, path, postTo(h, path, body))
	})
}

func FuzzGenerate(f *testing.F) {
	fuzzBodies(f, "/inference/v1/generate",
		`{"token_ids": [1, 2], "sampling_params": {"logprobs": 0, "max_tokens": 3}, "output_mode": "text"}`,
		`{"token_ids": [97], "sampling_params": {"logprobs": 2, "prompt_logprobs": 1, "n": 2}, "return_token_ids": true}`,
		`{"token_ids": [97], "stream": true, "stream_options": {"include_usage": true}, "request_id": "r"}`,
		`{"token_ids": null, "sampling_params": null}`)
}

func FuzzTokenize(f *testing.F) {
	for _, body := range []string{
		`{"prompt": "x", "return_token_strs": true}`, `{"messages": [{"role": "user", "content": "x"}]}`, `{"tokens": [1, 2]}`,
		`{"prompt": null}`, `{"tokens": [null]}`,
	} {
		f.Add(true, body)
		f.Add(false, body)
	}
	h := fuzzed(f)
	f.Fuzz(func(t *testing.T, back bool, body string) {
		path := map[bool]string{true: "/detokenize", false: "/tokenize"}[back]
		checkAnswer(t, path, postTo(h, path, body))
	})
}

// fuzzBodies sends bodies to a path.
func fuzzBodies(f *testing.F, path string, seeds ...string) {
	for _, body := range seeds {
		f.Add(body)
	}
	h := fuzzed(f)
	f.Fuzz(func(t *testing.T, body string) { checkAnswer(t, path, postTo(h, path, body)) })
}

// fuzzed serves a fake model.
func fuzzed(f *testing.F) http.Handler {
	m := art.NewModel("player", nil)
	if err := m.Register(f.Context(), &arttest.Backend{}); err != nil {
		f.Fatal(err)
	}
	return Routes(func() []*art.Model { return []*art.Model{m} }, &Config{
		Tokens: func(_ *art.Model, id int32) []byte { return []byte(string(id)) },
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
