package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/internal/wire"
)

// TestRoutes_Response pins a complete response with all optional fields. The time is synctest's.
func TestRoutes_Response(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := post(newHandler(t, reply(art.Message{Content: "Hi"})), hello(`, "logprobs": true, "return_token_ids": true`))
		if w.Code != http.StatusOK || w.Header().Get("Content-Type") != "application/json" {
			t.Fatalf("status %d, type %q", w.Code, w.Header().Get("Content-Type"))
		}
		want := `{
  "id": "chatcmpl-1",
  "object": "chat.completion",
  "created": 946684800,
  "model": "player@3",
  "choices": [
    {
      "index": 0,
      "message": {
        "role": "assistant",
        "content": "Hi"
      },
      "logprobs": {
        "content": [
          {
            "token": "H",
            "logprob": -0.25,
            "bytes": [
              72
            ],
            "top_logprobs": []
          },
          {
            "token": "\u0000",
            "logprob": -1.5,
            "bytes": [
              0
            ],
            "top_logprobs": []
          }
        ]
      },
      "finish_reason": "stop",
      "token_ids": [
        72,
        0
      ]
    }
  ],
  "usage": {
    "prompt_tokens": 3,
    "completion_tokens": 2,
    "total_tokens": 5,
    "prompt_tokens_details": {
      "cached_tokens": 1
    }
  },
  "prompt_token_ids": [
    7,
    8,
    9
  ]
}`
		if got := indented(t, w.Body.Bytes()); got != want {
			t.Errorf("got %s", got)
		}
	})
}

// TestRoutes_PlainResponse checks that token ids and logprobs are left out by default.
func TestRoutes_PlainResponse(t *testing.T) {
	w := post(newHandler(t, reply(art.Message{Content: "Hi"})), hello(``))
	body := w.Body.String()
	if strings.Contains(body, "token_ids") || !strings.Contains(body, `"logprobs":null`) {
		t.Errorf("got %s", body)
	}
}

// TestRoutes_Errors checks status and code of the errors of a completion.
func TestRoutes_Errors(t *testing.T) {
	cases := []struct {
		err    error
		status int
		code   string
	}{
		{&art.Error{Op: "complete", Err: art.ErrInvalid, Hint: "do this"}, 400, ""},
		{fmt.Errorf("5000 tokens: %w", art.ErrContextLength), 400, "context_length_exceeded"},
		{art.ErrUnsupported, 400, "unsupported"},
		{art.ErrNotRegistered, 404, "model_not_found"},
		{art.ErrClosed, 503, "backend_closed"},
		{context.Canceled, 499, "canceled"},
		{context.DeadlineExceeded, 504, "timeout"},
		{errors.New("the device is gone"), 500, ""},
	}
	for _, c := range cases {
		t.Run(c.err.Error(), func(t *testing.T) {
			for _, stream := range []string{``, `, "stream": true`} {
				w := post(newHandler(t, fails(c.err)), hello(stream))
				e := readWireError(t, w.Body)
				if w.Code != c.status || e.Code != c.code || !strings.Contains(e.Message, c.err.Error()) {
					t.Errorf("got status %d and %+v, want %d and %q", w.Code, e, c.status, c.code)
				}
				if got := w.Header().Get("X-Should-Retry"); (got == "false") != (c.status == 503) {
					t.Errorf("X-Should-Retry is %q for status %d", got, c.status)
				}
			}
		})
	}
}

// TestRoutes_ErrorBody pins the form of an error, with its nulls.
func TestRoutes_ErrorBody(t *testing.T) {
	w := post(newHandler(t, fails(errors.New("no device"))), hello(``))
	want := `{"error":{"message":"no device","type":"server_error","param":null,"code":null}}`
	if got := w.Body.String(); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// TestRoutes_ModelNames checks which names are served.
func TestRoutes_ModelNames(t *testing.T) {
	h := newHandler(t, reply(art.Message{Content: "Hi"}))
	cases := map[string]struct {
		status  int
		message string
	}{
		"player":    {200, ""},
		"player@3":  {200, ""},
		"player@2":  {404, `"player@3"`},
		"player@03": {404, `"player@3"`},
		"player@x":  {404, `"player@3"`},
		"other":     {404, `there is "player"`},
		"":          {404, `there is "player"`},
	}
	for name, c := range cases {
		w := post(h, strings.Replace(hello(``), "player", name, 1))
		if w.Code != c.status {
			t.Errorf("%q: status %d, want %d", name, w.Code, c.status)
		}
		if w.Code == http.StatusOK {
			continue
		}
		e := readWireError(t, w.Body)
		if e.Code != "model_not_found" || e.Param != "model" || !strings.Contains(e.Message, c.message) {
			t.Errorf("%q: got %+v, want a message with %s", name, e, c.message)
		}
	}
}

// TestRoutes_ModelsList checks the list of models and one of them.
func TestRoutes_ModelsList(t *testing.T) {
	b := reply(art.Message{})
	models := []*art.Model{register(t, b, "one"), register(t, b, "two")}
	h := Routes(func() []*art.Model { return models }, nil)
	const one, two = `{"id":"one","object":"model","created":0,"owned_by":"art","step":3}`,
		`{"id":"two","object":"model","created":0,"owned_by":"art","step":3}`
	for path, want := range map[string]string{
		"/v1/models":       `{"object":"list","data":[` + one + `,` + two + `]}`,
		"/v1/models/two":   two,
		"/v1/models/one@3": one,
	} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		if got := w.Body.String(); w.Code != http.StatusOK || got != want {
			t.Errorf("%s: status %d, %s", path, w.Code, got)
		}
	}
	w := httptest.NewRecorder()
	Routes(func() []*art.Model { return nil }, nil).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/v1/models", nil))
	if got := w.Body.String(); got != `{"object":"list","data":[]}` {
		t.Errorf("no models: %s", got)
	}
}

// TestRoutes_HTTP checks methods, paths, content types and the limit of the body.
func TestRoutes_HTTP(t *testing.T) {
	m := register(t, reply(art.Message{Content: "Hi"}), "player")
	h := Routes(func() []*art.Model { return []*art.Model{m} }, &Config{MaxBody: 100})
	cases := []struct {
		method, path, contentType, body string
		status                          int
		code                            string
	}{
		{"POST", "/v1/chat/completions", "application/json; charset=utf-8", hello(``), 200, ""},
		{"POST", "/v1/chat/completions", "Application/JSON;charset=UTF-8", hello(``), 200, ""},
		{"POST", "/v1/chat/completions", "application/json; charset=utf-16", hello(``), 415, "unsupported_media_type"},
		{"POST", "/v1/chat/completions", "application/json; charset", hello(``), 415, "unsupported_media_type"},
		{"POST", "/v1/chat/completions", "", hello(``), 415, "unsupported_media_type"}, // a page can send it: it was served
		{"POST", "/v1/chat/completions", "application/vnd.api+json", hello(``), 415, "unsupported_media_type"},
		{"POST", "/v1/chat/completions", "text/plain", hello(``), 415, "unsupported_media_type"},
		{"POST", "/v1/chat/completions", "application/x-www-form-urlencoded", hello(``), 415, "unsupported_media_type"},
		{"POST", "/v1/chat/completions", "application/json", hello(strings.Repeat(" ", 100)), 413, "body_too_large"},
		{"GET", "/v1/chat/completions", "", "", 405, "method_not_allowed"},
		{"POST", "/v1/models", "", "", 405, "method_not_allowed"},
		{"HEAD", "/v1/models/player", "", "", 200, ""},
		{"GET", "/v1/models/other", "", "", 404, "model_not_found"},
		{"POST", "/v1/embeddings", "", "{}", 404, "not_found"},
	}
	for _, c := range cases {
		r := httptest.NewRequest(c.method, c.path, strings.NewReader(c.body))
		r.Header.Set("Content-Type", c.contentType)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != c.status {
			t.Errorf("%s %s %q: status %d, want %d: %s", c.method, c.path, c.contentType, w.Code, c.status, w.Body)
			continue
		}
		if w.Code == http.StatusOK {
			continue
		}
		if e := readWireError(t, w.Body); e.Code != c.code || e.Type != wire.TypeInvalid {
			t.Errorf("%s %s: got %+v, want code %q", c.method, c.path, e, c.code)
		}
		if allow := w.Header().Get("Allow"); (allow != "") != (c.status == 405) {
			t.Errorf("%s %s: Allow is %q", c.method, c.path, allow)
		}
	}
}

// TestRoutes_NoTokens checks requests for logprobs and token ids that the backend does not have.
func TestRoutes_NoTokens(t *testing.T) {
	frozen := reply(art.Message{Content: "Hi"})
	complete := frozen.complete
	frozen.complete = func(ctx context.Context, m *art.Model, req *art.ChatRequest) (*art.ChatResponse, error) {
		resp, err := complete(ctx, m, req)
		resp.Message.Sample = nil
		return resp, err
	}
	m := register(t, reply(art.Message{Content: "Hi"}), "player")
	withoutText := Routes(func() []*art.Model { return []*art.Model{m} }, nil)
	for _, c := range []struct {
		name    string
		handler http.Handler
		param   string
		status  int
	}{
		{"frozen", newHandler(t, frozen), "logprobs", 400},
		{"frozen", newHandler(t, frozen), "return_token_ids", 400},
		{"without text", withoutText, "logprobs", 400},
		{"without text", withoutText, "return_token_ids", 200},
	} {
		w := post(c.handler, hello(`, "`+c.param+`": true`))
		if w.Code != c.status {
			t.Errorf("%s, %s: status %d, want %d", c.name, c.param, w.Code, c.status)
		}
		if w.Code != http.StatusOK {
			if e := readWireError(t, w.Body); e.Param != c.param {
				t.Errorf("%s, %s: got %+v", c.name, c.param, e)
			}
		}
	}
}
