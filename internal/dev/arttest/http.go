package arttest

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/goart-dev/art"
)

// wireRequest is what the fake reads of a chat completion request.
type wireRequest struct {
	Model       string        `json:"model"`
	Messages    []art.Message `json:"messages"`
	Tools       []art.Tool    `json:"tools"`
	Temperature *float64      `json:"temperature"`
	TopP        *float64      `json:"top_p"`
	MaxTokens   *int          `json:"max_tokens"`
	Seed        *uint64       `json:"seed"`
}

// Handler implements driver.HTTPServer. It answers every client, and supports no options.
func (b *Backend) Handler(opts *art.HandlerOptions) (http.Handler, error) {
	if opts != nil {
		return nil, &art.Error{Op: "serve", Err: art.ErrUnsupported, Hint: "the fake answers everybody: pass nil"}
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/chat/completions", func(w http.ResponseWriter, r *http.Request) { b.serve(w, r, nil) })
	mux.HandleFunc("GET /v1/models", b.serveModels)
	return mux, nil
}

// Transport implements driver.HTTPServer.
func (b *Backend) Transport(m *art.Model) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		w := httptest.NewRecorder()
		b.serve(w, r, m)
		response := w.Result()
		response.Request = r
		return response, nil
	})
}

// roundTripper makes an [http.RoundTripper] of a function.
type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip implements [http.RoundTripper].
func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// serve answers a chat completion request as m, or as the model that it names when m is nil.
func (b *Backend) serve(w http.ResponseWriter, r *http.Request, m *art.Model) {
	defer r.Body.Close()
	var req wireRequest
	if err := json.NewDecoder(r.Body).Decode(&req); err != nil {
		writeJSON(w, http.StatusBadRequest, errorBody(err.Error()))
		return
	}
	if m == nil {
		m = b.named(req.Model)
	}
	if m == nil {
		writeJSON(w, http.StatusNotFound, errorBody("no such model"))
		return
	}
	opts := &art.ChatOptions{Temperature: req.Temperature, TopP: req.TopP, MaxTokens: req.MaxTokens, Seed: req.Seed}
	response, err := m.Complete(r.Context(), &art.History{Messages: req.Messages, Tools: req.Tools}, opts)
	if err != nil {
		writeJSON(w, http.StatusBadRequest, errorBody(err.Error()))
		return
	}
	choice := map[string]any{"index": 0, "message": response.Message, "finish_reason": response.Finish}
	writeJSON(w, http.StatusOK, map[string]any{
		"id": response.ID, "object": "chat.completion", "model": response.Model, "choices": []any{choice},
		"usage": response.Usage,
	})
}

// serveModels lists the registered models.
func (b *Backend) serveModels(w http.ResponseWriter, _ *http.Request) {
	b.mu.Lock()
	data := []map[string]any{}
	for m := range b.runs {
		data = append(data, map[string]any{"id": m.Name(), "object": "model"})
	}
	b.mu.Unlock()
	writeJSON(w, http.StatusOK, map[string]any{"object": "list", "data": data})
}

// named returns the registered model of a name or "name@step", or nil.
func (b *Backend) named(name string) *art.Model {
	name, _, _ = strings.Cut(name, "@")
	b.mu.Lock()
	defer b.mu.Unlock()
	for m := range b.runs {
		if m.Name() == name {
			return m
		}
	}
	return nil
}

// errorBody is OpenAI's form of an error.
func errorBody(message string) map[string]any {
	return map[string]any{"error": map[string]any{"message": message, "type": "invalid_request_error"}}
}

// writeJSON writes a response.
func writeJSON(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // fails only when the client has gone
}
