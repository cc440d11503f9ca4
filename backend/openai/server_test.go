package openai_test

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/hosted"
	"github.com/goart-dev/art/backend/openai"
)

// key is what must not appear in errors and logs.
const key = "sk-secret-0123456789"

// server answers requests by a script, its last entry again and again, and keeps what it was sent.
type server struct {
	*httptest.Server
	script []http.HandlerFunc

	mu      sync.Mutex
	bodies  []map[string]json.RawMessage
	headers []http.Header
}

func newServer(t *testing.T, script ...http.HandlerFunc) *server {
	s := &server{script: script}
	s.Server = httptest.NewServer(http.HandlerFunc(s.serve))
	t.Cleanup(s.Close)
	return s
}

func (s *server) serve(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/v1/models" {
		reply(200, `{"object":"list","data":[{"id":"other-1"},{"id":"other-2"}]}`)(w, r)
		return
	}
	body, _ := io.ReadAll(r.Body)
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(body, &fields); err != nil {
		http.Error(w, err.Error(), http.StatusTeapot)
		return
	}
	s.mu.Lock()
	n := len(s.bodies)
	s.bodies, s.headers = append(s.bodies, fields), append(s.headers, r.Header)
	s.mu.Unlock()
	s.script[min(n, len(s.script)-1)](w, r)
}

// calls returns how many completions were asked for.
func (s *server) calls() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.bodies)
}

// field returns a field of the newest request as JSON, "" when it was not there.
func (s *server) field(name string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return string(s.bodies[len(s.bodies)-1][name])
}

// reply answers with a status and JSON. Headers are pairs.
func reply(status int, body string, headers ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
		for i := 0; i < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		w.WriteHeader(status)
		io.WriteString(w, body)
	}
}

// said answers with a message, 1000 prompt tokens (200 of them cached) and 500 in the reply.
func said(content string) http.HandlerFunc {
	return reply(200, fmt.Sprintf(`{"id":"chatcmpl-1","object":"chat.completion","model":"m","choices":[{"index":0,
		"message":{"role":"assistant","content":%q,"refusal":null,"annotations":[]},"logprobs":null,"finish_reason":"stop"}],
		"usage":{"prompt_tokens":1000,"completion_tokens":500,"total_tokens":1500,
		"prompt_tokens_details":{"cached_tokens":200}}}`, content))
}

// logs is where the backends of a test log to.
type logs struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *logs) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logs) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// open returns a backend of a server. Neither its log nor any error of complete may have the key.
func open(t *testing.T, s *server, opts openai.Options) *hosted.Backend {
	t.Helper()
	if opts.BaseURL == "" {
		opts.BaseURL = s.URL + "/v1"
	}
	if opts.Key == "" {
		opts.Key = key
	}
	if opts.Backoff == 0 {
		opts.Backoff = time.Millisecond
	}
	if opts.Dir == "" {
		opts.Dir = t.TempDir()
	}
	log := &logs{}
	opts.Logger = slog.New(slog.NewTextHandler(log, nil))
	b, err := openai.Open(t.Context(), &opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		b.Close()
		if strings.Contains(log.String(), key) {
			t.Errorf("the log has the key: %s", log)
		}
	})
	return b
}

// register returns a model on b.
func register(t *testing.T, b art.Backend, base string) *art.Model {
	t.Helper()
	m := art.NewModel(strings.ReplaceAll(t.Name(), "/", "-"), &art.ModelOptions{Base: base})
	if err := m.Register(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	return m
}

// complete asks for a reply.
func complete(t *testing.T, m *art.Model, opts *art.ChatOptions) (*art.ChatResponse, error) {
	t.Helper()
	response, err := m.Complete(t.Context(), &art.History{Messages: []art.Message{art.User("Hello?")}}, opts)
	if err != nil && strings.Contains(err.Error(), key) {
		t.Errorf("the error has the key: %v", err)
	}
	return response, err
}
