package openai_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/hosted"
	"github.com/goart-dev/art/backend/openai"
)

const busy = `{"error":{"message":"Rate limit reached","type":"requests","code":"rate_limit_exceeded"}}`

// cut breaks a connection in the middle of a body.
func cut(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", "1000")
	io.WriteString(w, `{"id":"x","choices":[`)
	panic(http.ErrAbortHandler)
}

// hang answers when the client is gone.
func hang(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }

// hangInBody sends a part of an answer, and no more.
func hangInBody(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	io.WriteString(w, `{"id":`)
	w.(http.Flusher).Flush()
	<-r.Context().Done()
}

func TestComplete_SentAgain(t *testing.T) {
	for name, first := range map[string]http.HandlerFunc{
		"429 at once":      reply(429, busy, "Retry-After", "0"),
		"429 by date":      reply(429, busy, "Retry-After", time.Now().Add(-time.Hour).UTC().Format(http.TimeFormat)),
		"429 in ms":        reply(429, busy, "Retry-After-Ms", "3"),
		"500":              reply(500, `{"error":"oops"}`),
		"503 without body": reply(503, ""),
		"529":              reply(529, `{}`),
		"cut":              cut,
		"hang":             hang,
		"hang in the body": hangInBody,
		"torn JSON":        reply(200, `{"id":"x","choices":[{"mess`),
		"no choices":       reply(200, `{"id":"x","choices":[]}`),
		"error in 200":     reply(200, `{"error":{"message":"overloaded","code":503,"metadata":{"provider_name":"X"}}}`),
		"error in choice":  reply(200, `{"choices":[{"error":{"message":"overloaded","code":502},"finish_reason":"error"}]}`),
		"told to":          reply(400, `{}`, "X-Should-Retry", "true"),
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t, first, first, said("Hi."))
			b := open(t, s, openai.Options{Timeout: 300 * time.Millisecond})
			response, err := complete(t, register(t, b, "m"), nil)
			if err != nil || response.Message.Content != "Hi." {
				t.Fatalf("response %+v, error %v", response, err)
			}
			if u := b.Usage(); u.Retries != 2 || u.Requests != 1 || u.Failures != 0 {
				t.Errorf("usage %+v", u)
			}
		})
	}
}

func TestComplete_NotSentAgain(t *testing.T) {
	invalid := func(message string) string {
		return fmt.Sprintf(`{"error":{"message":%q,"type":"x","code":null}}`, message)
	}
	for _, test := range []struct {
		name   string
		answer http.HandlerFunc
		want   error
		text   string // in the error
	}{
		{"400", reply(400, invalid("no such field")), art.ErrInvalid, "no such field"},
		{"401", reply(401, `{"error":"Unauthorized"}`), art.ErrInvalid, "Key in the Options"},
		{"401 with the key", reply(401, invalid("bad key "+key)), art.ErrInvalid, "bad key [redacted]"},
		{"404", reply(404, invalid("The model `m` does not exist")), art.ErrInvalid, "other-1, other-2"},
		{"quota", reply(429, `{"error":{"message":"You exceeded your quota","code":"insufficient_quota"}}`),
			hosted.ErrService, "credit"},
		{"asks for an hour", reply(429, busy, "Retry-After", "3600"), hosted.ErrService, "Rate limit reached"},
		{"asks for a date", reply(503, busy, "Retry-After", time.Now().Add(time.Hour).UTC().Format(http.TimeFormat)),
			hosted.ErrService, "Rate limit reached"},
		{"told not to", reply(500, `{}`, "X-Should-Retry", "false"), hosted.ErrService, "status 500"},
		{"HTML", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			io.WriteString(w, "<html>Welcome to the proxy")
		}, hosted.ErrService,
			`Welcome to the proxy (check that BaseURL of the Options is that of the API: its answer is of type "text/html")`},
		{"huge", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			for range (32<<20)/len(spaces) + 1 {
				if _, err := io.WriteString(w, spaces); err != nil {
					return
				}
			}
		}, hosted.ErrService, "larger than"},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := newServer(t, test.answer)
			b := open(t, s, openai.Options{})
			_, err := complete(t, register(t, b, "m"), nil)
			if !errors.Is(err, test.want) || !strings.Contains(err.Error(), test.text) || !errors.As(err, new(*art.Error)) {
				t.Errorf("error %v", err)
			}
			if u := b.Usage(); s.calls() != 1 || u.Failures != 1 || u.Requests != 0 {
				t.Errorf("%d calls, usage %+v", s.calls(), u)
			}
		})
	}
}

// TestComplete_ContentType: JSON is read whatever type a server or a proxy gives it.
func TestComplete_ContentType(t *testing.T) {
	for _, kind := range []string{"text/plain; charset=utf-8", "application/octet-stream", "text/html", "nonsense", ""} {
		s := newServer(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header()["Content-Type"] = []string{kind}
			io.WriteString(w, ` {"choices":[{"message":{"role":"assistant","content":"Hi."}}]}`)
		})
		response, err := complete(t, register(t, open(t, s, openai.Options{}), "m"), nil)
		if err != nil || response.Message.Content != "Hi." {
			t.Errorf("%q: %v, %v", kind, response, err)
		}
	}
}

var spaces = strings.Repeat(" ", 1<<20)

// TestComplete_ContextLength has the errors in the form of each server.
func TestComplete_ContextLength(t *testing.T) {
	for name, answer := range map[string]http.HandlerFunc{
		"OpenAI": reply(400, `{"error":{"message":"Your input exceeds what the model takes.","type":"invalid_request_error",
			"param":"messages","code":"context_length_exceeded"}}`),
		"vLLM": reply(400, `{"error":{"message":"This model's maximum context length is 4096 tokens. However, you requested 5000
			tokens.","type":"BadRequestError","param":null,"code":400}}`),
		"older vLLM": reply(400, `{"object":"error","message":"The decoder prompt (length 5000) is longer than the maximum model
			length of 4096.","type":"BadRequestError","param":null,"code":400}`),
		"OpenRouter": reply(400, `{"error":{"message":"This endpoint's maximum context length is 131072 tokens. However, you
			requested about 141607 tokens.","code":400,"metadata":{"provider_name":"X"}}}`),
		"OpenRouter with status 200": reply(200, `{"error":{"message":"Provider returned error","code":400,"metadata":
			{"raw":"{\"error\":{\"message\":\"This model's maximum context length is 8192 tokens.\"}}"}}}`),
		"llama.cpp": reply(400, `{"error":{"code":400,"message":"the request is too large for this slot","type":
			"exceed_context_size_error","n_prompt_tokens":1407,"n_ctx":256}}`),
		"older llama.cpp": reply(500, `{"error":{"code":500,"message":"the request exceeds the available context size. try
			increasing the context size or enable context shift","type":"server_error"}}`),
		"Ollama": reply(400, `{"error":{"message":"request (351 tokens) exceeds the available context size (256 tokens), try
			increasing it","type":"api_error","param":null,"code":null}}`),
		"Ollama, text": reply(500, `{"error":"the input length exceeds the context length"}`),
	} {
		t.Run(name, func(t *testing.T) {
			answer := func(w http.ResponseWriter, r *http.Request) { // JSON has no line breaks in strings
				recorder := httptest.NewRecorder()
				answer(recorder, r)
				reply(recorder.Code, strings.Join(strings.Fields(recorder.Body.String()), " "))(w, r)
			}
			s := newServer(t, answer)
			_, err := complete(t, register(t, open(t, s, openai.Options{}), "m"), nil)
			if !errors.Is(err, art.ErrContextLength) || s.calls() != 1 {
				t.Errorf("%d calls, error %v", s.calls(), err)
			}
		})
	}
}

func TestComplete_GivesUp(t *testing.T) {
	s := newServer(t, hang)
	b := open(t, s, openai.Options{Timeout: 300 * time.Millisecond, Retries: 2})
	_, err := complete(t, register(t, b, "m"), nil)
	if !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, hosted.ErrService) || s.calls() != 3 {
		t.Errorf("%d calls, error %v", s.calls(), err)
	}
}

func TestComplete_CallerGivesUp(t *testing.T) {
	s := newServer(t, hang)
	b := open(t, s, openai.Options{})
	m := register(t, b, "m")
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	_, err := m.Complete(ctx, &art.History{Messages: []art.Message{art.User("?")}}, nil)
	if !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, hosted.ErrService) || s.calls() != 1 {
		t.Errorf("%d calls, error %v", s.calls(), err)
	}
}

// TestClose_EndsCalls: Close does not wait for a server that hangs.
func TestClose_EndsCalls(t *testing.T) {
	s := newServer(t, hang)
	b := open(t, s, openai.Options{})
	m := register(t, b, "m")
	done := make(chan error)
	go func() { _, err := complete(t, m, nil); done <- err }()
	for s.calls() == 0 {
		time.Sleep(time.Millisecond)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-done; !errors.Is(err, art.ErrClosed) {
		t.Errorf("error %v", err)
	}
}

// TestComplete_Redirect: a key does not follow a redirect to another host.
func TestComplete_Redirect(t *testing.T) {
	other := newServer(t, said("Give me your key."))
	s := newServer(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, other.URL+r.URL.Path, http.StatusTemporaryRedirect)
	})
	_, err := complete(t, register(t, open(t, s, openai.Options{}), "m"), nil)
	if err == nil || !strings.Contains(err.Error(), "redirects") || other.calls() != 0 || s.calls() != 1 {
		t.Errorf("error %v, %d and %d calls", err, s.calls(), other.calls())
	}
}

func TestComplete_NoServer(t *testing.T) {
	s := newServer(t, said(""))
	s.Close()
	_, err := complete(t, register(t, open(t, s, openai.Options{Retries: 1}), "m"), nil)
	if !errors.Is(err, hosted.ErrService) || !strings.Contains(err.Error(), "BaseURL") {
		t.Errorf("error %v", err)
	}
}
