package gemini_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/backendtest"
	"github.com/goart-dev/art/backend/gemini"
	"github.com/goart-dev/art/backend/hosted"
)

// key is what must not appear in errors.
const key = "AIza-secret-0123456789"

// server answers requests by a script, its last entry again and again, and keeps the newest body.
type server struct {
	*httptest.Server
	mu     sync.Mutex
	calls  int
	body   map[string]json.RawMessage
	header http.Header
}

func newServer(t *testing.T, script ...http.HandlerFunc) *server {
	s := &server{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/v1beta/models" {
			reply(200, `{"models":[{"name":"models/gemini-other"}]}`)(w, r)
			return
		}
		body, _ := io.ReadAll(r.Body)
		s.mu.Lock()
		s.body, s.header = nil, r.Header
		err := json.Unmarshal(body, &s.body)
		n := s.calls
		s.calls++
		s.mu.Unlock()
		if err != nil || !strings.HasSuffix(r.URL.Path, ":generateContent") {
			http.Error(w, fmt.Sprint(r.URL.Path, err), http.StatusTeapot)
			return
		}
		script[min(n, len(script)-1)](w, r)
	}))
	t.Cleanup(s.Close)
	return s
}

// reply answers with a status and JSON. Headers are pairs.
func reply(status int, body string, headers ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		for i := 0; i < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		w.WriteHeader(status)
		io.WriteString(w, body)
	}
}

// said answers with parts, and a prompt of 1000 tokens, of which 200 are cached.
func said(finish, parts string) http.HandlerFunc {
	return reply(200, fmt.Sprintf(`{"candidates":[{"content":{"role":"model","parts":[%s]},"finishReason":%q,"index":0}],
		"usageMetadata":{"promptTokenCount":1000,"candidatesTokenCount":400,"thoughtsTokenCount":100,
		"cachedContentTokenCount":200,"totalTokenCount":1500},"responseId":"r"}`, parts, finish))
}

const hi = `{"text":"Hi."}`

// failed answers with an error in Google's form.
func failed(status int, kind, message string, headers ...string) http.HandlerFunc {
	return reply(status, fmt.Sprintf(`{"error":{"code":%d,"message":%q,"status":%q}}`, status, message, kind), headers...)
}

func open(t *testing.T, s *server, opts gemini.Options) *hosted.Backend {
	t.Helper()
	opts.BaseURL, opts.Key, opts.Backoff, opts.Dir = s.URL, key, time.Millisecond, t.TempDir()
	b, err := gemini.Open(t.Context(), &opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	return b
}

func register(t *testing.T, b art.Backend) *art.Model {
	t.Helper()
	m := art.NewModel(strings.ReplaceAll(t.Name(), "/", "-"), &art.ModelOptions{Base: "m"})
	if err := m.Register(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	return m
}

func TestContract(t *testing.T) {
	backendtest.RunHosted(t, func(t *testing.T) art.Backend {
		return open(t, newServer(t, said("STOP", hi)), gemini.Options{})
	})
}

// TestChat plays a turn with two calls at once, and compares what is sent.
func TestChat(t *testing.T) {
	s := newServer(t, said("STOP", `{"thought":true,"text":"Hm."},{"text":"Wait."},
		{"functionCall":{"name":"add","args":{"z":1,"b":2}},"thoughtSignature":"c2ln"},{"functionCall":{"id":"b","name":"sub"}}`),
		said("STOP", hi))
	prices := hosted.Prices{"m": {Prompt: 2, CachedPrompt: 1, Completion: 4}}
	b := open(t, s, gemini.Options{Prices: prices, Extra: []byte(`{"labels":{"user":"me"},"tools":null}`)})
	m := register(t, b)
	trajectory := art.NewTrajectory(art.System("Be brief."), art.User("1+2?"))
	trajectory.Tools = []art.Tool{{Name: "add", Description: "Adds.",
		Parameters: json.RawMessage(`{"type":"object","properties":{"z":{},"b":{}}}`)}}
	message, err := m.Chat(t.Context(), trajectory, nil)
	if err != nil {
		t.Fatal(err)
	}
	if message.Reasoning != "Hm." || message.Content != "Wait." || len(message.ToolCalls) != 2 ||
		len(message.ToolCalls[0].ID) != 9 || message.ToolCalls[0].Arguments != `{"b":2,"z":1}` || message.Sample != nil {
		t.Fatalf("message %+v", message)
	}
	id := message.ToolCalls[0].ID
	trajectory.Add(art.ToolResult(id, "3"))
	trajectory.Add(art.ToolResult("b", `{"value":0}`))
	seed, limit := uint64(1<<63+5), 9
	opts := &art.ChatOptions{Seed: &seed, MaxTokens: &limit, Stop: []string{"END"}}
	if _, err := m.Chat(t.Context(), trajectory, opts); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"labels": `{"user":"me"}`, "tools": "", "systemInstruction": `{"parts":[{"text":"Be brief."}],"role":"user"}`,
		"generationConfig": `{"maxOutputTokens":9,"seed":5,"stopSequences":["END"],"temperature":1,"topP":1}`,
		"contents": `[{"parts":[{"text":"1+2?"}],"role":"user"},{"parts":[{"text":"Wait."},` +
			`{"functionCall":{"args":{"b":2,"z":1},"id":"` + id + `","name":"add"},"thoughtSignature":"c2ln"},` +
			`{"functionCall":{"id":"b","name":"sub"}}],"role":"model"},` +
			`{"parts":[{"functionResponse":{"id":"` + id + `","name":"add","response":{"output":"3"}}},` +
			`{"functionResponse":{"id":"b","name":"sub","response":{"value":0}}}],"role":"user"}]`,
	} {
		if got := string(s.body[name]); got != want {
			t.Errorf("%s is\n%s, want\n%s", name, got, want)
		}
	}
	if s.header.Get("X-Goog-Api-Key") != key {
		t.Errorf("headers %v", s.header)
	}
	u := b.Usage()
	if u.PromptTokens != 2000 || u.CachedTokens != 400 || u.CompletionTokens != 1000 || u.Cost != 2*0.0038 {
		t.Errorf("usage %+v", u)
	}
}

// TestChat_Tools: schemas keep the order of their keys.
func TestChat_Tools(t *testing.T) {
	s := newServer(t, said("STOP", hi))
	trajectory := art.NewTrajectory(art.User("1+2?"))
	trajectory.Tools = []art.Tool{{Name: "add",
		Parameters: json.RawMessage(`{"type":"object","properties":{"z":{},"b":{}}}`)}}
	if _, err := register(t, open(t, s, gemini.Options{})).Chat(t.Context(), trajectory, nil); err != nil {
		t.Fatal(err)
	}
	want := `[{"functionDeclarations":[{"name":"add","parametersJsonSchema":` +
		`{"type":"object","properties":{"z":{},"b":{}}}}]}]`
	if got := string(s.body["tools"]); got != want {
		t.Errorf("tools are\n%s, want\n%s", got, want)
	}
}

func TestComplete_Failures(t *testing.T) {
	for _, test := range []struct {
		name  string
		first http.HandlerFunc
		want  error // nil when the second attempt is answered
		text  string
	}{
		{"429", failed(429, "RESOURCE_EXHAUSTED", "slow down", "Retry-After", "0"), nil, ""},
		{"429 with details", reply(429, `{"error":{"code":429,"message":"slow down","status":"RESOURCE_EXHAUSTED","details":
			[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"0.002s"}]}}`), nil, ""},
		{"503", failed(503, "UNAVAILABLE", "overloaded"), nil, ""},
		{"500 in text", func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "oops", 500) }, nil, ""},
		{"no candidates", reply(200, `{"candidates":[]}`), nil, ""},
		{"cut", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Content-Length", "1000")
			io.WriteString(w, `{"id":`)
			panic(http.ErrAbortHandler)
		}, nil, ""},
		{"hang", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, nil, ""},
		{"asks for an hour", reply(429, `{"error":{"code":429,"message":"slow down","status":"RESOURCE_EXHAUSTED","details":
			[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"3600s"}]}}`), hosted.ErrService, "slow down"},
		{"400", failed(400, "INVALID_ARGUMENT", "temperature: range"), art.ErrInvalid, "temperature: range"},
		{"bad key", failed(400, "INVALID_ARGUMENT", "API key not valid: "+key), art.ErrInvalid, "Key in the Options"},
		{"404", failed(404, "NOT_FOUND", "models/m is not found"), art.ErrInvalid, "gemini-other"},
		{"blocked", reply(200, `{"promptFeedback":{"blockReason":"SAFETY"}}`), art.ErrInvalid, "SAFETY"},
		{"too long", failed(400, "INVALID_ARGUMENT",
			"The input token count (1200000) exceeds the maximum number of tokens allowed (1048576)."),
			art.ErrContextLength, "1200000"},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := newServer(t, test.first, said("STOP", hi))
			b := open(t, s, gemini.Options{Timeout: 300 * time.Millisecond})
			_, err := register(t, b).Complete(t.Context(), &art.History{Messages: []art.Message{art.User("?")}}, nil)
			if test.want == nil {
				if err != nil || b.Usage().Retries != 1 {
					t.Errorf("error %v, usage %+v", err, b.Usage())
				}
				return
			}
			if !errors.Is(err, test.want) || !strings.Contains(err.Error(), test.text) || strings.Contains(err.Error(), key) ||
				s.calls != 1 {
				t.Errorf("%d calls, error %v", s.calls, err)
			}
		})
	}
}

func TestComplete_Unsupported(t *testing.T) {
	s := newServer(t, said("STOP", hi))
	m := register(t, open(t, s, gemini.Options{}))
	var image art.Message
	if err := json.Unmarshal([]byte(`{"role":"user","content":[{"type":"image_url","image_url":{"url":"x"}}]}`),
		&image); err != nil {
		t.Fatal(err)
	}
	call := art.Assistant("")
	call.ToolCalls = []art.ToolCall{{ID: "a", Name: "f", Arguments: "{"}}
	for name, test := range map[string]struct {
		message art.Message
		opts    *art.ChatOptions
		want    error
	}{
		"image":         {image, nil, art.ErrUnsupported},
		"template args": {art.User("?"), &art.ChatOptions{TemplateArgs: []byte(`{"a":1}`)}, art.ErrUnsupported},
		"arguments":     {call, nil, art.ErrInvalid},
	} {
		_, err := m.Complete(t.Context(), &art.History{Messages: []art.Message{test.message}}, test.opts)
		if !errors.Is(err, test.want) || s.calls != 0 {
			t.Errorf("%s: %d calls, error %v", name, s.calls, err)
		}
	}
}

// TestOpen_KeyStaysWithItsHost: the key in the environment is not sent to other servers.
func TestOpen_KeyStaysWithItsHost(t *testing.T) {
	t.Setenv("GEMINI_API_KEY", key)
	t.Setenv("GOOGLE_GEMINI_BASE_URL", "")
	s := newServer(t, said("STOP", hi))
	b, err := gemini.Open(t.Context(), &gemini.Options{BaseURL: s.URL, Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	_, err = register(t, b).Complete(t.Context(), &art.History{Messages: []art.Message{art.User("?")}}, nil)
	if err != nil || s.header.Get("X-Goog-Api-Key") == key {
		t.Errorf("error %v, headers %v", err, s.header)
	}
}
