package server

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/internal/dev/arttest"
)

// sdkRequests has what the Python clients of internal/dev/conformance/sdks send, one request a line.
const sdkRequests = "testdata/sdks.jsonl"

// sdkRequest is a request of a client, and the status of the answer.
type sdkRequest struct {
	Path   string          `json:"path"`
	Key    string          `json:"key"` // the header that had the key
	Status int             `json:"status"`
	Body   json.RawMessage `json:"body"`
}

// looker calls a tool, and then says what its result was.
func looker(_ context.Context, _ *art.Model, req *art.ChatRequest) (art.Message, error) {
	if last := req.Messages[len(req.Messages)-1]; last.Role == art.RoleTool {
		return art.Assistant("A wall."), nil
	}
	m := art.Message{Role: art.RoleAssistant, Reasoning: "Hm", Content: "Looking."}
	m.ToolCalls = []art.ToolCall{{ID: "c1", Name: "look", Arguments: `{"at": 1}`}}
	return m, nil
}

// newLooker serves a model that looks, with the key "secret".
func newLooker(t *testing.T) http.Handler {
	t.Helper()
	m := register(t, &arttest.Backend{Reply: looker}, "player")
	h, err := Handler(func() []*art.Model { return []*art.Model{m} }, &Config{
		Tokens: func(_ *art.Model, id int32) []byte { return []byte(string(id)) },
	}, &art.HandlerOptions{Keys: []string{"secret"}})
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// TestSDKs_Replayed sends what the Python clients have sent. Each request has the status that the clients got. To
// record the requests again:
//
//	ART_PYTHON=python go test ./backend/server -run SDKs_Python -update
//
// with a Python that has the packages of internal/dev/conformance/sdks/requirements.txt.
func TestSDKs_Replayed(t *testing.T) {
	h := newLooker(t)
	data, err := os.ReadFile(sdkRequests)
	if err != nil {
		t.Fatal(err)
	}
	paths := map[string]bool{}
	for line := range strings.Lines(string(data)) {
		var sent sdkRequest
		if err := json.Unmarshal([]byte(line), &sent); err != nil {
			t.Fatal(err)
		}
		paths[sent.Path] = true
		r := httptest.NewRequest(http.MethodPost, "http://localhost"+sent.Path, bytes.NewReader(sent.Body))
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set(sent.Key, map[bool]string{true: "Bearer secret", false: "secret"}[sent.Key == "Authorization"])
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != sent.Status || bytes.Contains(w.Body.Bytes(), []byte("event: error")) {
			t.Errorf("%s %s: status %d, want %d: %s", sent.Path, sent.Body, w.Code, sent.Status, w.Body)
		}
	}
	if len(paths) != 5 {
		t.Errorf("the recording has the paths %v", paths)
	}
}

// TestSDKs_Python runs the clients.
func TestSDKs_Python(t *testing.T) {
	python := os.Getenv("ART_PYTHON")
	if python == "" {
		t.Skip("ART_PYTHON is not set")
	}
	h, recorded := newLooker(t), &sdkRecorder{}
	s := httptest.NewServer(recorded.around(h))
	defer s.Close()
	const clients = "../../internal/dev/conformance/sdks/clients.py"
	out, err := exec.CommandContext(t.Context(), python, clients, s.URL, "secret").CombinedOutput()
	if err != nil || !strings.Contains(string(out), "all passed") {
		t.Fatalf("%v: %s", err, out)
	}
	if *update {
		if err := os.WriteFile(sdkRequests, recorded.lines.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// sdkRecorder writes down requests.
type sdkRecorder struct {
	mu    sync.Mutex
	lines bytes.Buffer
}

// around returns a handler whose requests are written down.
func (s *sdkRecorder) around(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body) // what is missing shows in the replay
		r.Body = io.NopCloser(bytes.NewReader(body))
		seen := &statusWriter{ResponseWriter: w, status: http.StatusOK}
		h.ServeHTTP(seen, r)
		key := "Authorization"
		if r.Header.Get(key) == "" {
			key = "X-Api-Key"
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		line, _ := json.Marshal(sdkRequest{r.URL.Path, key, seen.status, body}) // a request that was served is JSON
		s.lines.Write(append(line, '\n'))
	})
}

// statusWriter remembers a status.
type statusWriter struct {
	http.ResponseWriter
	status int
}

func (w *statusWriter) WriteHeader(status int) {
	w.status = status
	w.ResponseWriter.WriteHeader(status)
}

func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
