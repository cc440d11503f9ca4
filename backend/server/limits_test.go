package server

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/internal/dev/arttest"
)

// limited serves a backend with limits.
func limited(t *testing.T, b art.Backend, opts *art.ModelOptions, limits art.HandlerOptions) http.Handler {
	t.Helper()
	m := art.NewModel("player", opts)
	if err := m.Register(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	limits.Hosts = []string{"example.com"} // that of httptest's requests
	h, err := Handler(func() []*art.Model { return []*art.Model{m} }, nil, &limits)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// TestLimits_Tokens: every API refuses more tokens than allowed, and a reply that nothing limits gets the limit.
func TestLimits_Tokens(t *testing.T) {
	for _, c := range []struct {
		path, open string
		field      string // that asks for 11
	}{
		{"/v1/chat/completions", hello(``), `"max_completion_tokens": 11`},
		{"/v1/chat/completions", hello(`, "stream": true`), `"max_tokens": 11`},
		{completionsPath, `{"model": "player", "prompt": "x"}`, `"max_tokens": 11`},
		{responsesPath, `{"model": "player", "input": "x"}`, `"max_output_tokens": 11`},
		{"/inference/v1/generate", `{"token_ids": [1], "sampling_params": {}}`, ``},
		{messagesPath, message(``), ``},
	} {
		var last art.Sampling
		b := &arttest.Backend{Reply: func(_ context.Context, _ *art.Model, req *art.ChatRequest) (art.Message, error) {
			last = req.Settings
			return art.Assistant("x"), nil
		}}
		h := limited(t, b, nil, art.HandlerOptions{MaxTokens: 10})
		if c.field != "" {
			body := strings.TrimSuffix(c.open, "}") + ", " + c.field + "}"
			w := postTo(h, c.path, body)
			if w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), "at most 10") {
				t.Errorf("%s %s: status %d: %s", c.path, body, w.Code, w.Body)
			}
			w = postTo(h, c.path, c.open)
			if w.Code != http.StatusOK || last.MaxTokens != 10 {
				t.Errorf("%s: status %d, max_tokens %d: %s", c.path, w.Code, last.MaxTokens, w.Body)
			}
		} else if w := postTo(h, c.path, c.open); w.Code == http.StatusOK && last.MaxTokens > 10 || w.Code > 400 {
			t.Errorf("%s: status %d, max_tokens %d: %s", c.path, w.Code, last.MaxTokens, w.Body)
		}
	}
}

// TestLimits_ModelTokens: the model's own limit counts when it is the lower one.
func TestLimits_ModelTokens(t *testing.T) {
	for own, want := range map[int]int{5: 5, 50: 10} {
		b := &fakeBackend{complete: reply(art.Message{}).complete}
		h := limited(t, b, &art.ModelOptions{Chat: art.ChatOptions{MaxTokens: &own}}, art.HandlerOptions{MaxTokens: 10})
		if w := post(h, hello(``)); w.Code != http.StatusOK {
			t.Fatalf("status %d: %s", w.Code, w.Body)
		}
		wantEqual(t, "max_tokens", b.last.Settings.MaxTokens, want)
	}
}

// TestLimits_Choices: replies to one request are limited.
func TestLimits_Choices(t *testing.T) {
	h := limited(t, &arttest.Backend{}, nil, art.HandlerOptions{MaxChoices: 3})
	for body, status := range map[string]int{`, "n": 3`: 200, `, "n": 4`: 400, `, "n": 9223372036854775807`: 400} {
		if w := post(h, hello(body)); w.Code != status {
			t.Errorf("%s: status %d: %s", body, w.Code, w.Body)
		}
	}
}

// TestLimits_Requests: a request beyond the limit is refused at once and may be sent again; probes are not counted.
func TestLimits_Requests(t *testing.T) {
	begun, end := make(chan struct{}), make(chan struct{})
	b := &arttest.Backend{Reply: func(context.Context, *art.Model, *art.ChatRequest) (art.Message, error) {
		begun <- struct{}{}
		<-end
		return art.Assistant("x"), nil
	}}
	h := limited(t, b, nil, art.HandlerOptions{MaxRequests: 1})
	first := make(chan int)
	go func() { first <- post(h, hello(``)).Code }()
	<-begun
	w := post(h, hello(``))
	if e := readWireError(t, w.Body); w.Code != http.StatusServiceUnavailable || e.Code != "too_many_requests" ||
		w.Header().Get("Retry-After") == "" {
		t.Errorf("status %d, %+v", w.Code, e)
	}
	probe := httptest.NewRecorder()
	h.ServeHTTP(probe, httptest.NewRequest(http.MethodGet, "http://localhost"+healthPath, nil))
	wantEqual(t, "probe", probe.Code, http.StatusOK)
	close(end)
	wantEqual(t, "first", <-first, http.StatusOK)
	go func() { <-begun }()
	wantEqual(t, "next", post(h, hello(``)).Code, http.StatusOK)
}

// TestLimits_Depth: brackets count outside of strings only.
func TestLimits_Depth(t *testing.T) {
	h := newHandler(t, &arttest.Backend{})
	nested := func(n int) string {
		return hello(`, "tools": [{"type": "function", "function": {"name": "f", "parameters": ` +
			strings.Repeat(`{"a":`, n) + "1" + strings.Repeat("}", n) + "}}]")
	}
	quoted := hello(`, "user": "\"` + strings.Repeat("[", 300) + `"`)
	for body, status := range map[string]int{nested(250): 200, nested(256): 400, nested(100_000): 400, quoted: 200} {
		if w := post(h, body); w.Code != status {
			t.Errorf("%.200s: status %d: %.200s", body, w.Code, w.Body)
		}
	}
}

// TestLimits_Invalid: negative limits are refused by name.
func TestLimits_Invalid(t *testing.T) {
	_, err := Handler(nil, nil, &art.HandlerOptions{MaxRequests: -1, MaxChoices: -1, MaxTokens: -1})
	for _, name := range []string{"MaxRequests is -1", "MaxChoices is -1", "MaxTokens is -1"} {
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: error %v", name, err)
		}
	}
}
