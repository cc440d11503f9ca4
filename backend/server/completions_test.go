package server

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/internal/dev/arttest"
)

const completionsPath = "/v1/completions"

// withoutID removes the made-up id of the fake's replies.
func withoutID(body string) string {
	before, after, ok := strings.Cut(body, "fake-")
	if !ok {
		return body
	}
	_, after, _ = strings.Cut(after, `"`)
	return before + `"` + withoutID(after)
}

// TestCompletions_Response pins complete responses: of a text, whose tokens are its letters, and of ids.
func TestCompletions_Response(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHandler(t, says(art.Message{Content: "Hi"}))
		const head = `{"id":"cmpl_","object":"text_completion","created":946684800,"model":"player@0",`
		const usage = `"usage":{"prompt_tokens":7,"completion_tokens":2,"total_tokens":9,` +
			`"prompt_tokens_details":{"cached_tokens":0}}}`
		cases := map[string]string{
			`"prompt": "user:Go"`: `"choices":[{"index":0,"text":"Hi","logprobs":null,"finish_reason":"stop"}],`,
			`"prompt": [[117,115,101,114,58,71,111]], "logprobs": 0, "return_token_ids": true, "prompt_logprobs": 0, "max_tokens": 1`: `"choices":[{"index":0,"text":"H",` +
				`"logprobs":{"text_offset":[0],"token_logprobs":[-0.5625],"tokens":["H"],"top_logprobs":null},` +
				`"finish_reason":"length","prompt_token_ids":[117,115,101,114,58,71,111],"token_ids":[72],"prompt_logprobs":[null,` +
				`{"115":{"logprob":-0.25,"rank":1,"decoded_token":"s"}},{"101":{"logprob":-0.375,"rank":1,"decoded_token":"e"}},` +
				`{"114":{"logprob":-0.1875,"rank":1,"decoded_token":"r"}},{"58":{"logprob":-0.6875,"rank":1,"decoded_token":":"}},` +
				`{"71":{"logprob":-0.5,"rank":1,"decoded_token":"G"}},{"111":{"logprob":-1,"rank":1,"decoded_token":"o"}}]}],`,
		}
		for fields, want := range cases {
			w := postTo(h, completionsPath, `{"model": "player", `+fields+`}`)
			got := withoutID(w.Body.String())
			wantUsage := usage
			if strings.Contains(fields, "max_tokens") {
				wantUsage = strings.NewReplacer(`"completion_tokens":2`, `"completion_tokens":1`, `:9`, `:8`).Replace(usage)
			}
			if w.Code != http.StatusOK || got != head+want+wantUsage {
				t.Errorf("%s: status %d, got %s, want %s", fields, w.Code, got, head+want+wantUsage)
			}
		}
	})
}

// TestCompletions_Stream pins the events of a stream.
func TestCompletions_Stream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHandler(t, says(art.Message{Content: "Hi"}))
		const head = `data: {"id":"cmpl_","object":"text_completion","created":946684800,"model":"player@0","choices":[`
		w := postTo(h, completionsPath, `{"model": "player", "prompt": "Go", "stream": true, "return_token_ids": true,
			"logprobs": 0, "return_tokens_as_token_ids": true, "stream_options": {"include_usage": true}}`)
		want := head + `{"index":0,"text":"Hi","logprobs":{"text_offset":[0,11],"token_logprobs":[-0.5625,-0.625],` +
			`"tokens":["token_id:72","token_id:105"],"top_logprobs":null},"finish_reason":null,` +
			`"prompt_token_ids":[71,111],"token_ids":[72,105]}]}` + "\n\n" +
			head + `{"index":0,"text":"","logprobs":null,"finish_reason":"stop"}]}` + "\n\n" +
			head + `],"usage":{"prompt_tokens":2,"completion_tokens":2,"total_tokens":4,` +
			`"prompt_tokens_details":{"cached_tokens":0}}}` + "\n\ndata: [DONE]\n\n"
		if got := withoutID(w.Body.String()); got != want {
			t.Errorf("got\n%s\nwant\n%s", got, want)
		}
	})
}

// TestGenerate_Response pins a response and a stream.
func TestGenerate_Response(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHandler(t, says(art.Message{Content: "Hi"}))
		const head = `{"request_id":"r1","model":"player@0","created":946684800,"output_mode":"`
		const logprobs = `"logprobs":{"content":[{"token_id":72,"logprob":-0.5625,"top_logprobs":[]},` +
			`{"token_id":105,"logprob":-0.625,"top_logprobs":[]}]}`
		const usage = `"usage":{"prompt_tokens":2,"completion_tokens":2,"total_tokens":4,` +
			`"prompt_tokens_details":{"cached_tokens":0}}`
		const versions = `"weight_versions":[{"version":"0","start":0,"end":2}]`
		const texts = `"logprobs":{"content":[{"token":"H","logprob":-0.5625,"bytes":[72],"top_logprobs":[]},` +
			`{"token":"i","logprob":-0.625,"bytes":[105],"top_logprobs":[]}]}`
		const body = `{"token_ids": [71, 111], "request_id": "r1", "return_token_ids": true,
			"sampling_params": {"logprobs": 0}`
		w := postTo(h, "/inference/v1/generate", body+`, "output_mode": "text"}`)
		want := head + `text","choices":[{"index":0,"finish_reason":"stop","token_ids":[72,105],"text":"Hi",` + texts +
			`,` + versions + `}],` + usage + `,"prompt_token_ids":[71,111]}`
		if got := w.Body.String(); w.Code != http.StatusOK || got != want {
			t.Errorf("status %d, got\n%s, want\n%s", w.Code, got, want)
		}
		w = postTo(h, "/inference/v1/generate", body+`, "stream": true, "stream_options": {"include_usage": true}}`)
		want = "data: " + head + `tokens","choices":[{"index":0,"finish_reason":null,"token_ids":[72,105],` + logprobs +
			`}],"prompt_token_ids":[71,111]}` + "\n\n" +
			"data: " + head + `tokens","choices":[{"index":0,"finish_reason":"stop","token_ids":[],` +
			`"logprobs":{"content":[]},` + versions + `}]}` + "\n\n" +
			"data: " + head + `tokens","choices":[],` + usage + "}\n\ndata: [DONE]\n\n"
		if got := w.Body.String(); got != want {
			t.Errorf("got\n%s, want\n%s", got, want)
		}
	})
}

// TestTokenize_RoundTrip checks the ids of a text and of a conversation, and the text of ids.
func TestTokenize_RoundTrip(t *testing.T) {
	h := newHandler(t, &arttest.Backend{})
	for _, c := range [][3]string{
		{"/tokenize", `{"prompt": "Go"}`, `{"count":2,"max_model_len":null,"tokens":[71,111],"token_strs":null}`},
		{"/tokenize", `{"prompt": "", "model": "player"}`, `{"count":0,"max_model_len":null,"tokens":[],"token_strs":null}`},
		{"/tokenize", `{"messages": [{"role": "user", "content": "Go"}], "return_token_strs": true}`,
			`{"count":8,"max_model_len":null,"tokens":[117,115,101,114,58,71,111,10],` +
				`"token_strs":["u","s","e","r",":","G","o","\n"]}`},
		{"/detokenize", `{"tokens": [71, 111]}`, `{"prompt":"Go"}`},
	} {
		if w := postTo(h, c[0], c[1]); w.Code != http.StatusOK || w.Body.String() != c[2] {
			t.Errorf("%s: status %d, got %s, want %s", c[1], w.Code, w.Body, c[2])
		}
	}
}

// TestTokens_Refused checks that what is not supported is refused by name.
func TestTokens_Refused(t *testing.T) {
	const generatePath = "/inference/v1/generate"
	completion := func(fields string) string { return `{"model": "player", "prompt": "x"` + fields + `}` }
	text := func(fields string) string {
		return `{"token_ids": [1], "output_mode": "text", "sampling_params": {` + fields + `}}`
	}
	params := func(fields string) string { return `{"token_ids": [1], "sampling_params": {` + fields + `}}` }
	cases := []struct{ path, body, want string }{
		{completionsPath, `{"model": "player"}`, "prompt must not be empty"},
		{completionsPath, completion(`, "prompt": []`), "prompt must not be empty"},
		{completionsPath, completion(`, "prompt": {}`), "prompt must be a string, a list"},
		{completionsPath, completion(`, "prompt": [1.5]`), "prompt must be a string, a list"},
		{completionsPath, completion(`, "prompt": ["a", ""]`), "prompt must not be empty"},
		{completionsPath, completion(`, "prompt": [[1], []]`), "prompt must not be empty"},
		{completionsPath, completion(`, "prompt": ["a", "b"], "n": 65`), "n asks for 65 replies to 2 prompts; at most 128"},
		{completionsPath, completion(`, "logprobs": 21`), "logprobs must be between 0 and 20"},
		{completionsPath, completion(`, "echo": true, "stream": true`), "echo is not supported in a stream"},
		{completionsPath, completion(`, "suffix": "end"`), "suffix is supported only as"},
		{completionsPath, completion(`, "best_of": 3`), "best_of is supported only as 1"},
		{completionsPath, completion(`, "temperature": -1`), "temperature must not be negative"},
		{completionsPath, completion(`, "temperature": "hot"`), "temperature must be a number"},
		{completionsPath, completion(`, "chat_template_kwargs": {"a": 1}`), "chat_template_kwargs is not supported"},
		{completionsPath, completion(`, "prompt_logprobs": -1`), "prompt_logprobs must be between 0 and 20"},
		{completionsPath, completion(`, "prompt_logprobs": 0, "stream": true`), "prompt_logprobs is not supported in a stream"},
		{generatePath, `{"token_ids": []}`, "token_ids must not be empty"},
		{generatePath, `{"token_ids": "x"}`, "token_ids must be"},
		{generatePath, `{"token_ids": [1], "output_mode": "json"}`, "output_mode must be"},
		{generatePath, `{"token_ids": [1], "features": {}}`, "features is not supported"},
		{generatePath, `{"token_ids": [1], "sampling_params": 5}`, "sampling_params must be an object"},
		{generatePath, params(`"logprobs": -1`), "logprobs must be between 0 and 20"},
		{generatePath, text(`"detokenize": false`), "detokenize is supported only as true"},
		{generatePath, text(`"skip_special_tokens": false`), "skip_special_tokens is supported only as true"},
		{generatePath, params(`"logprob_token_ids": [1]`), "logprob_token_ids is supported only as []"},
		{generatePath, params(`"allowed_token_ids": []`), "allowed_token_ids must not be empty"},
		{generatePath, params(`"allowed_token_ids": [-1]`), "allowed_token_ids must not be negative"},
		{generatePath, params(`"bad_words": [""]`), "bad_words must not contain an empty string"},
		{generatePath, params(`"n": 129`), "n asks for 129 replies"},
		{generatePath, params(`"top_p": 2`), "top_p must be above 0"},
		{"/tokenize", `{}`, "prompt is missing"},
		{"/tokenize", `{"prompt": "x", "messages": []}`, "prompt excludes messages"},
		{"/tokenize", `{"messages": [{"role": "user", "content": "x"}], "add_generation_prompt": false}`, "add_generation_prompt"},
		{"/tokenize", `{"prompt": "x", "model": "other"}`, "there is no model"},
		{"/detokenize", `{}`, "tokens is missing"},
		{"/detokenize", `{"tokens": "x"}`, "tokens must be"},
	}
	h := newHandler(t, &arttest.Backend{})
	for _, c := range cases {
		w := postTo(h, c.path, c.body)
		if e := readWireError(t, w.Body); w.Code < 400 || w.Code >= 500 || !strings.Contains(e.Message, c.want) {
			t.Errorf("%s: status %d, %s", c.body, w.Code, e.Message)
		}
	}
}

// TestRoutes_NeedInterfaces checks that a route answers 501 when the backend lacks its interface.
func TestRoutes_NeedInterfaces(t *testing.T) {
	h := newHandler(t, reply(art.Message{Content: "Hi"}))
	for path, body := range map[string]string{
		completionsPath:          `{"model": "player", "prompt": "x"}`,
		"/inference/v1/generate": `{"token_ids": [1]}`,
		"/tokenize":              `{"prompt": "x"}`,
		"/detokenize":            `{"tokens": [1]}`,
		"/v1/chat/completions":   hello(`, "prompt_logprobs": 0`),
	} {
		w := postTo(h, path, body)
		if e := readWireError(t, w.Body); w.Code != http.StatusNotImplemented || e.Code != "not_implemented" {
			t.Errorf("%s: status %d, %+v", path, w.Code, e)
		}
	}
}

// TestHealth_NeedsNoKey checks the probes of a server with a key, and that all other routes need it, in each form.
func TestHealth_NeedsNoKey(t *testing.T) {
	var models []*art.Model
	h, err := Handler(func() []*art.Model { return models }, nil, &art.HandlerOptions{Keys: []string{"secret"}})
	if err != nil {
		t.Fatal(err)
	}
	get := func(path, header, value string) int {
		r := httptest.NewRequest(http.MethodGet, "http://localhost"+path, nil)
		if header != "" {
			r.Header.Set(header, value)
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w.Code
	}
	if got := [2]int{get(healthPath, "", ""), get(readyPath, "", "")}; got != [2]int{200, 503} {
		t.Errorf("without a model: %v", got)
	}
	models = append(models, register(t, &arttest.Backend{}, "player"))
	if got := get(readyPath, "", ""); got != 200 {
		t.Errorf("with a model: %d", got)
	}
	for _, path := range []string{
		"/v1/models", "/v1/models/player", "/v1/chat/completions", completionsPath, responsesPath, messagesPath,
		messagesPath + "/count_tokens", "/tokenize", "/detokenize", "/inference/v1/generate", "/metrics", "/health/x",
	} {
		for _, wrong := range [][2]string{{"", ""}, {"X-Api-Key", "Secret"}, {"Authorization", "secret"}} {
			if got := get(path, wrong[0], wrong[1]); got != 401 {
				t.Errorf("%s with %q: %d", path, wrong, got)
			}
		}
		for _, right := range [][2]string{
			{"Authorization", "Bearer secret"}, {"x-api-key", "secret"}, {"X-API-Key", "secret"},
		} {
			if got := get(path, right[0], right[1]); got == 401 {
				t.Errorf("%s with %q: %d", path, right, got)
			}
		}
	}
}
