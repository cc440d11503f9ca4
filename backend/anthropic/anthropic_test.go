package anthropic_test

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
	"github.com/goart-dev/art/backend/anthropic"
	"github.com/goart-dev/art/backend/backendtest"
	"github.com/goart-dev/art/backend/hosted"
)

// key is what must not appear in errors.
const key = "sk-ant-secret-0123456789"

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
		if r.URL.Path == "/v1/models" {
			reply(200, `{"data":[{"type":"model","id":"claude-other","display_name":"x"}],"has_more":false}`)(w, r)
			return
		}
		body, _ := io.ReadAll(r.Body)
		s.mu.Lock()
		s.body, s.header = nil, r.Header
		err := json.Unmarshal(body, &s.body)
		n := s.calls
		s.calls++
		s.mu.Unlock()
		if err != nil || r.URL.Path != "/v1/messages" {
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

// said answers with blocks, and a prompt of 1000 tokens, of which 200 are cached.
func said(stop, blocks string) http.HandlerFunc {
	return reply(200, fmt.Sprintf(`{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[%s],
		"stop_reason":%q,"stop_sequence":null,"usage":{"input_tokens":700,"output_tokens":500,
		"cache_read_input_tokens":200,"cache_creation_input_tokens":100}}`, blocks, stop))
}

const hi = `{"type":"text","text":"Hi."}`

// failed answers with an error in Anthropic's form.
func failed(status int, kind, message string, headers ...string) http.HandlerFunc {
	return reply(status, fmt.Sprintf(`{"type":"error","error":{"type":%q,"message":%q}}`, kind, message), headers...)
}

func open(t *testing.T, s *server, opts anthropic.Options) *hosted.Backend {
	t.Helper()
	opts.BaseURL, opts.Key, opts.Backoff, opts.Dir = s.URL, key, time.Millisecond, t.TempDir()
	b, err := anthropic.Open(t.Context(), &opts)
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
		return open(t, newServer(t, said("end_turn", hi)), anthropic.Options{})
	})
}

// TestChat plays a turn with two calls at once, and compares what is sent.
func TestChat(t *testing.T) {
	s := newServer(t, said("tool_use",
		`{"type":"thinking","thinking":"Hm.","signature":"c2ln"},{"type":"text","text":"Wait."},
		{"type":"tool_use","id":"a","name":"add","input":{"z":1,"b":2}},{"type":"tool_use","id":"b","name":"add","input":{}}`),
		said("end_turn", hi))
	prices := hosted.Prices{"m": {Prompt: 2, CachedPrompt: 1, Completion: 4}}
	b := open(t, s, anthropic.Options{Prices: prices,
		Extra: []byte(`{"metadata":{"user_id":"me"},"stop_sequences":null}`)})
	m := register(t, b)
	trajectory := art.NewTrajectory(art.System("Be brief."), art.User("1+2?"))
	trajectory.Tools = []art.Tool{{Name: "add", Description: "Adds.",
		Parameters: json.RawMessage(`{"type":"object","properties":{"z":{},"b":{}}}`)}}
	message, err := m.Chat(t.Context(), trajectory, nil)
	if err != nil {
		t.Fatal(err)
	}
	if message.Reasoning != "Hm." || message.Content != "Wait." || len(message.ToolCalls) != 2 ||
		message.ToolCalls[0].Arguments != `{"z":1,"b":2}` || message.Sample != nil {
		t.Fatalf("message %+v", message)
	}
	trajectory.Add(art.ToolResult("a", "3"))
	trajectory.Add(art.ToolResult("b", "0"))
	half, limit := 0.5, 9
	opts := &art.ChatOptions{Temperature: &half, MaxTokens: &limit, Stop: []string{"END"}}
	if _, err := m.Chat(t.Context(), trajectory, opts); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"model": `"m"`, "max_tokens": "9", "temperature": "0.5", "top_p": "", "stop_sequences": "",
		"metadata": `{"user_id":"me"}`, "system": `[{"text":"Be brief.","type":"text"}]`,
		"tools": `[{"input_schema":{"type":"object","properties":{"z":{},"b":{}}},"name":"add","description":"Adds."}]`,
		"messages": `[{"content":[{"text":"1+2?","type":"text"}],"role":"user"},` +
			`{"content":[{"text":"Wait.","type":"text"},{"id":"a","input":{"z":1,"b":2},"name":"add","type":"tool_use"},` +
			`{"id":"b","input":{},"name":"add","type":"tool_use"}],"role":"assistant"},` +
			`{"content":[{"tool_use_id":"a","is_error":false,"content":[{"text":"3","type":"text"}],"type":"tool_result"},` +
			`{"tool_use_id":"b","is_error":false,"content":[{"text":"0","type":"text"}],"type":"tool_result"}],"role":"user"}]`,
	} {
		if got := string(s.body[name]); got != want {
			t.Errorf("%s is\n%s, want\n%s", name, got, want)
		}
	}
	if s.header.Get("X-Api-Key") != key {
		t.Errorf("headers %v", s.header)
	}
	u := b.Usage()
	if u.PromptTokens != 2000 || u.CachedTokens != 400 || u.CompletionTokens != 1000 || u.Cost != 2*0.0038 {
		t.Errorf("usage %+v", u)
	}
}

func TestComplete_Failures(t *testing.T) {
	for _, test := range []struct {
		name  string
		first http.HandlerFunc
		want  error // nil when the second attempt is answered
		text  string
	}{
		{"429", failed(429, "rate_limit_error", "slow down", "Retry-After", "0"), nil, ""},
		{"529", failed(529, "overloaded_error", "Overloaded"), nil, ""},
		{"500 in text", func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "oops", 500) }, nil, ""},
		{"cut", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Content-Length", "1000")
			io.WriteString(w, `{"id":`)
			panic(http.ErrAbortHandler)
		}, nil, ""},
		{"hang", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, nil, ""},
		{"asks for an hour", failed(429, "rate_limit_error", "slow down", "Retry-After", "3600"), hosted.ErrService,
			"slow down"},
		{"400", failed(400, "invalid_request_error", "temperature: range"), art.ErrInvalid, "temperature: range"},
		{"401", failed(401, "authentication_error", "invalid "+key), art.ErrInvalid, "invalid [redacted]"},
		{"404", failed(404, "not_found_error", "model: m"), art.ErrInvalid, "claude-other"},
		{"no credit", failed(400, "billing_error", "Your credit balance is too low"), hosted.ErrService, "credit or quota"},
		{"too long", failed(400, "invalid_request_error", "prompt is too long: 210000 tokens > 200000 maximum"),
			art.ErrContextLength, "210000"},
		{"too long with max_tokens", failed(400, "invalid_request_error",
			"input length and `max_tokens` exceed context limit: 199000 + 8192 > 200000"), art.ErrContextLength, "199000"},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := newServer(t, test.first, said("end_turn", hi))
			b := open(t, s, anthropic.Options{Timeout: 300 * time.Millisecond})
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
	s := newServer(t, said("end_turn", hi))
	m := register(t, open(t, s, anthropic.Options{}))
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
	t.Setenv("ANTHROPIC_API_KEY", key)
	t.Setenv("ANTHROPIC_BASE_URL", "")
	s := newServer(t, said("end_turn", hi))
	b, err := anthropic.Open(t.Context(), &anthropic.Options{BaseURL: s.URL, Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	_, err = register(t, b).Complete(t.Context(), &art.History{Messages: []art.Message{art.User("?")}}, nil)
	if err != nil || s.header.Get("X-Api-Key") != "" || s.header.Get("Authorization") != "" {
		t.Errorf("error %v, headers %v", err, s.header)
	}
}
