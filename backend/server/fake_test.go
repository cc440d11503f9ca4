package server

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/internal/wire/wiretest"
)

var hello, list, withMessage = wiretest.Hello, wiretest.List, wiretest.WithMessage

// fakeBackend answers with a function and remembers the last request.
type fakeBackend struct {
	art.Backend // the methods that are not called stay nil
	step        int
	complete    func(ctx context.Context, m *art.Model, req *art.ChatRequest) (*art.ChatResponse, error)
	last        *art.ChatRequest
	stopped     string
}

func (b *fakeBackend) Register(context.Context, *art.Model) (int, error) { return b.step, nil }

func (b *fakeBackend) Complete(ctx context.Context, m *art.Model, req *art.ChatRequest) (*art.ChatResponse, error) {
	b.last = req
	r, err := b.complete(ctx, m, req)
	if r != nil {
		r.Stopped = b.stopped
	}
	return r, err
}

// reply returns a backend at step 3 that always answers with m, sampled as the tokens "Hi" and the end.
func reply(m art.Message) *fakeBackend {
	m.Role = art.RoleAssistant
	m.Sample = &art.Sample{PromptIDs: []int32{7, 8, 9}, IDs: []int32{72, 0}, Logprobs: []float32{-0.25, -1.5}, Step: 3}
	finish := art.FinishStop
	if len(m.ToolCalls) > 0 {
		finish = art.FinishToolCalls
	}
	return &fakeBackend{step: 3, complete: func(context.Context, *art.Model, *art.ChatRequest) (*art.ChatResponse, error) {
		return &art.ChatResponse{
			ID: "chatcmpl-1", Model: "player@3", Message: m, Finish: finish,
			Usage: art.Usage{PromptTokens: 3, CachedTokens: 1, CompletionTokens: 2},
		}, nil
	}}
}

// fails returns a backend whose completions fail.
func fails(err error) *fakeBackend {
	return &fakeBackend{step: 3, complete: func(context.Context, *art.Model, *art.ChatRequest) (*art.ChatResponse, error) {
		return nil, err
	}}
}

// register returns a registered model.
func register(t testing.TB, b art.Backend, name string) *art.Model {
	t.Helper()
	m := art.NewModel(name, nil)
	if err := m.Register(context.Background(), b); err != nil {
		t.Fatal(err)
	}
	return m
}

// newHandler serves one model, "player", of a backend. The bytes of a token are its id.
func newHandler(t testing.TB, b art.Backend) http.Handler {
	t.Helper()
	m := register(t, b, "player")
	tokens := func(_ *art.Model, id int32) []byte { return []byte{byte(id)} }
	return Routes(func() []*art.Model { return []*art.Model{m} }, &Config{Tokens: tokens})
}

// post sends a chat completions request.
func post(h http.Handler, body string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodPost, "/v1/chat/completions", strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// wireError is the error of a response.
type wireError struct {
	Message, Type, Param, Code string
}

// readWireError decodes the error of a response.
func readWireError(t *testing.T, body io.Reader) wireError {
	t.Helper()
	var outer map[string]wireError
	if err := json.NewDecoder(body).Decode(&outer); err != nil {
		t.Fatal(err)
	}
	return outer["error"]
}

// indented formats JSON for comparison.
func indented(t *testing.T, data []byte) string {
	t.Helper()
	var out bytes.Buffer
	if err := json.Indent(&out, data, "", "  "); err != nil {
		t.Fatalf("%v: %s", err, data)
	}
	return out.String()
}
