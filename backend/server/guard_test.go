package server

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goart-dev/art"
)

// guarded serves one model, "player".
func guarded(t *testing.T, b art.Backend, opts *art.HandlerOptions) http.Handler {
	t.Helper()
	m := register(t, b, "player")
	h, err := Handler(func() []*art.Model { return []*art.Model{m} }, nil, opts)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// ask sends a request with some headers, "name: value", and returns the response. The connection arrived at 10.0.0.7.
func ask(h http.Handler, method, url, body string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, url, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	for _, header := range headers {
		name, value, _ := strings.Cut(header, ": ")
		r.Header.Add(name, value)
	}
	local := &net.TCPAddr{IP: net.IPv4(10, 0, 0, 7), Port: 8080}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, local)))
	return w
}

// wantCode checks a status, and the code of an error; "" is none.
func wantCode(t *testing.T, what string, w *httptest.ResponseRecorder, status int, code string) {
	t.Helper()
	if w.Code != status {
		t.Errorf("%s: status %d, want %d: %s", what, w.Code, status, w.Body)
		return
	}
	if code == "" {
		return
	}
	if e := readWireError(t, w.Body); e.Code != code || e.Message == "" {
		t.Errorf("%s: got %+v, want code %q", what, e, code)
	}
}

// TestHandler_Hosts: only local and listed hosts are served, which prevents DNS rebinding.
func TestHandler_Hosts(t *testing.T) {
	plain := guarded(t, reply(art.Message{Content: "Hi"}), nil)
	listed := guarded(t, reply(art.Message{Content: "Hi"}), &art.HandlerOptions{
		Hosts: []string{"GPU-box", "other:8080", "10.1.1.1", "fd00::5"},
	})
	for host, status := range map[string][2]int{
		"localhost":              {200, 200},
		"LOCALHOST:8080":         {200, 200},
		"localhost.:1":           {200, 200},
		"a.localhost:8080":       {200, 200},
		"127.0.0.1:8080":         {200, 200},
		"127.9.9.9":              {200, 200},
		"[::1]:8080":             {200, 200},
		"[::1]":                  {200, 200},
		"[::ffff:127.0.0.1]":     {200, 200},
		"10.0.0.7:8080":          {200, 200}, // where the connection arrived
		"[::ffff:10.0.0.7]:8080": {200, 200},
		"10.0.0.8:8080":          {403, 403},
		"0.0.0.0:8080":           {403, 403},
		"evil.example":           {403, 403},
		"evil.example:8080":      {403, 403},
		"localhost.evil.example": {403, 403},
		"notlocalhost":           {403, 403},
		"":                       {403, 403},
		"gpu-box":                {403, 200},
		"gpu-box.:9000":          {403, 200},
		"other:8080":             {403, 200},
		"other:8081":             {403, 403},
		"other":                  {403, 403},
		"10.1.1.1:80":            {403, 200},
		"[fd00::5]:80":           {403, 200},
	} {
		for i, h := range []http.Handler{plain, listed} {
			r := httptest.NewRequest(http.MethodGet, "/v1/models", nil)
			r.Host = host
			local := &net.TCPAddr{IP: net.IPv4(10, 0, 0, 7), Port: 8080}
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, local)))
			code := ""
			if status[i] != http.StatusOK {
				code = "host_not_allowed"
			}
			wantCode(t, host, w, status[i], code)
		}
	}
}

// TestHandler_Origins: only pages of the server itself and of listed origins are served.
func TestHandler_Origins(t *testing.T) {
	const url = "http://localhost:8080/v1/chat/completions"
	plain := guarded(t, reply(art.Message{Content: "Hi"}), nil)
	listed := guarded(t, reply(art.Message{Content: "Hi"}), &art.HandlerOptions{
		Origins: []string{"https://App.example.com", "vscode-webview://x1"},
	})
	for origin, status := range map[string][2]int{
		"http://localhost:8080":         {200, 200}, // the server's own
		"https://localhost:8080":        {200, 200}, // by a proxy
		"http://localhost:8081":         {403, 403},
		"http://localhost":              {403, 403},
		"http://127.0.0.1:8080":         {403, 403},
		"null":                          {403, 403},
		"https://evil.example":          {403, 403},
		"https://app.example.com":       {403, 200},
		"https://app.example.com:443":   {403, 200},
		"http://app.example.com":        {403, 403},
		"https://app.example.com:8443":  {403, 403},
		"https://app.example.com.evil":  {403, 403},
		"https://app.example.com/x":     {403, 403},
		"https://u@app.example.com":     {403, 403},
		"vscode-webview://x1":           {403, 200},
		"https://localhost:8080.evil":   {403, 403},
		"http://localhost:8080@evil.io": {403, 403},
	} {
		for i, h := range []http.Handler{plain, listed} {
			w := ask(h, "POST", url, hello(``), "Origin: "+origin)
			code, allowed := "", w.Header().Get("Access-Control-Allow-Origin")
			if status[i] != http.StatusOK {
				code = "origin_not_allowed"
			}
			wantCode(t, origin, w, status[i], code)
			cors := ""
			if status[0] == 403 && status[i] == 200 {
				cors = origin
			}
			if allowed != cors || w.Header().Get("Vary") != "Origin" {
				t.Errorf("%s: Access-Control-Allow-Origin is %q, want %q", origin, allowed, cors)
			}
		}
	}
	w := ask(listed, "POST", url, hello(``), "Origin: https://app.example.com", "Origin: https://evil.example")
	wantCode(t, "two origins", w, 403, "origin_not_allowed")
}

// TestHandler_Preflight: CORS preflights of listed origins need no key.
func TestHandler_Preflight(t *testing.T) {
	h := guarded(t, reply(art.Message{}), &art.HandlerOptions{
		Origins: []string{"https://app.example.com"}, Keys: []string{"secret"},
	})
	const url = "http://localhost:8080/v1/chat/completions"
	preflight := []string{
		"Access-Control-Request-Method: POST", "Access-Control-Request-Headers: authorization,x-stainless-os",
	}
	w := ask(h, "OPTIONS", url, "", append(preflight, "Origin: https://app.example.com")...)
	got := w.Header()
	if w.Code != http.StatusNoContent || got.Get("Access-Control-Allow-Origin") != "https://app.example.com" ||
		got.Get("Access-Control-Allow-Headers") != "authorization,x-stainless-os" ||
		!strings.Contains(got.Get("Access-Control-Allow-Methods"), "POST") {
		t.Errorf("status %d, headers %v", w.Code, got)
	}
	w = ask(h, "OPTIONS", url, "", append(preflight, "Origin: https://evil.example")...)
	wantCode(t, "another origin", w, 403, "origin_not_allowed")
	wantCode(t, "no origin", ask(h, "OPTIONS", url, "", preflight...), 401, "invalid_api_key")
}

// TestHandler_Keys: only requests with one of the keys are served, and no response repeats a key.
func TestHandler_Keys(t *testing.T) {
	h := guarded(t, reply(art.Message{Content: "Hi"}), &art.HandlerOptions{Keys: []string{"first", "second"}})
	for header, status := range map[string]int{
		"Authorization: Bearer first":   200,
		"Authorization: bearer second":  200,
		"X-Api-Key: second":             200,
		"Authorization: Bearer third":   401,
		"Authorization: Bearer firs":    401,
		"Authorization: Bearer ":        401,
		"Authorization: first":          401,
		"Authorization: Basic first":    401,
		"X-Api-Key: ":                   401,
		"X-Other: first":                401,
		"Authorization: Bearer firstfi": 401,
	} {
		for _, url := range []string{"http://localhost/v1/chat/completions", "http://localhost/v1/other"} {
			want, code := status, ""
			if strings.HasSuffix(url, "other") && status == 200 {
				want = 404
			} else if status != 200 {
				code = "invalid_api_key"
			}
			w := ask(h, "POST", url, hello(``), header)
			if got := w.Header().Get("WWW-Authenticate"); (got != "") != (status == 401) {
				t.Errorf("%s: WWW-Authenticate is %q", header, got)
			}
			if strings.Contains(w.Body.String(), "first") && status == 401 {
				t.Errorf("%s: the answer repeats a key: %s", header, w.Body)
			}
			wantCode(t, header, w, want, code)
		}
	}
}

// TestHandler_Options: one error lists all invalid options and contains no key.
func TestHandler_Options(t *testing.T) {
	for name, c := range map[string]struct {
		opts art.HandlerOptions
		want []string
	}{
		"empty key":    {art.HandlerOptions{Keys: []string{"good", ""}}, []string{"Keys[1]"}},
		"key in lines": {art.HandlerOptions{Keys: []string{"hidden\n"}}, []string{"Keys[0]"}},
		"hosts": {art.HandlerOptions{Hosts: []string{"", "http://a", "a/b", "*.a"}},
			[]string{`""`, `"http://a"`, `"a/b"`, `"*.a"`}},
		"origins": {art.HandlerOptions{Origins: []string{"a.example", "null", "https://a/"}},
			[]string{`"a.example"`, `"null"`, `"https://a/"`}},
		"all hosts":   {art.HandlerOptions{Hosts: []string{"*"}}, []string{"without Keys"}},
		"all origins": {art.HandlerOptions{Origins: []string{"*"}}, []string{"without Keys"}},
		"numbers": {art.HandlerOptions{MaxBody: -1, MaxBodies: -2, BodyTimeout: -3},
			[]string{"MaxBody is -1", "MaxBodies is -2", "BodyTimeout is -3ns"}},
		"less than one": {art.HandlerOptions{MaxBodies: 5}, []string{"less than MaxBody"}},
	} {
		_, err := Handler(nil, nil, &c.opts)
		if !errors.Is(err, art.ErrInvalid) {
			t.Errorf("%s: error %v", name, err)
			continue
		}
		for _, want := range c.want {
			if !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hidden") {
				t.Errorf("%s: %q is not in %v", name, want, err)
			}
		}
	}
	all := guarded(t, reply(art.Message{Content: "Hi"}), &art.HandlerOptions{
		Hosts: []string{"*"}, Origins: []string{"*"}, Keys: []string{"k"}, MaxBody: 1 << 30,
	})
	w := ask(all, "POST", "http://any.example/v1/chat/completions", hello(``), "Origin: https://x.example", "X-Api-Key: k")
	wantCode(t, "all", w, 200, "")
	wantCode(t, "no key", ask(all, "GET", "http://any.example/v1/models", ""), 401, "invalid_api_key")
}

// unfinished is a body of n bytes that ends only when the test ends it. It signals read when the bytes have been read.
type unfinished struct {
	n    int
	read chan<- bool
	end  <-chan struct{}
}

func (b *unfinished) Read(data []byte) (int, error) {
	if b.n == 0 {
		b.read <- true
		<-b.end
		return 0, io.ErrUnexpectedEOF
	}
	n := min(len(data), b.n)
	b.n -= n
	return n, nil
}

// TestHandler_UnfinishedBodies: of many bodies that lack their last byte those beyond MaxBodies are refused, small
// requests are still answered, and the budget is restored afterwards.
func TestHandler_UnfinishedBodies(t *testing.T) {
	const size, clients = 1 << 20, 24
	h := guarded(t, reply(art.Message{Content: "Hi"}), &art.HandlerOptions{MaxBody: size, MaxBodies: 4 * size})
	const url = "http://localhost/v1/chat/completions"
	read, end, done := make(chan bool), make(chan struct{}), make(chan *httptest.ResponseRecorder)
	for range clients {
		go func() {
			r := httptest.NewRequest(http.MethodPost, url, &unfinished{size - 1, read, end})
			r.Header.Set("Content-Type", "application/json")
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			done <- w
		}()
	}
	held := 0
	for range clients {
		select {
		case <-read:
			held++
		case w := <-done:
			if w.Header().Get("Retry-After") == "" || w.Header().Get("X-Should-Retry") != "" {
				t.Errorf("headers %v", w.Header())
			}
			wantCode(t, "beyond the limit", w, 503, "too_many_bodies")
		}
	}
	if got := held * (size - 1 - freeBody); got > 4*size || got == 0 {
		t.Errorf("%d bodies are held, of %d bytes each", held, size-1)
	}
	wantCode(t, "a small one", ask(h, "POST", url, hello(``)), 200, "")
	close(end)
	for range held {
		wantCode(t, "cut off", <-done, 400, "")
	}
	if got := h.(*guard).bodies; len(got.held) != 0 || got.common != 0 {
		t.Errorf("bytes were not given back: %v, %d", got.held, got.common)
	}
	wantCode(t, "a large one, afterwards", ask(h, "POST", url, hello(strings.Repeat(" ", size-1000))), 200, "")
}

// TestHandler_SlowBody: a body that does not arrive is refused after BodyTimeout, which does not limit how long a reply
// takes.
func TestHandler_SlowBody(t *testing.T) {
	const timeout = 200 * time.Millisecond
	b := reply(art.Message{Content: "Hi"})
	complete := b.complete
	b.complete = func(ctx context.Context, m *art.Model, req *art.ChatRequest) (*art.ChatResponse, error) {
		select {
		case <-time.After(2 * timeout):
			return complete(ctx, m, req)
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	server := httptest.NewServer(guarded(t, b, &art.HandlerOptions{BodyTimeout: timeout}))
	defer server.Close()
	body, writer := io.Pipe()
	defer writer.Close()
	go io.WriteString(writer, `{"model":`)
	slow, err := server.Client().Post(server.URL+"/v1/chat/completions", "application/json", body)
	if err != nil {
		t.Fatal(err)
	}
	defer slow.Body.Close()
	if e := readWireError(t, slow.Body); slow.StatusCode != http.StatusRequestTimeout || e.Code != "body_timeout" {
		t.Errorf("slow body: status %d, %+v", slow.StatusCode, e)
	}
	fast, err := server.Client().Post(server.URL+"/v1/chat/completions", "application/json", strings.NewReader(hello(``)))
	if err != nil {
		t.Fatal(err)
	}
	defer fast.Body.Close()
	if text, _ := io.ReadAll(fast.Body); fast.StatusCode != http.StatusOK {
		t.Errorf("slow answer: status %d: %s", fast.StatusCode, text)
	}
}

// FuzzParseHost checks that parsed hosts survive a round trip, and that no name that can be registered is local.
func FuzzParseHost(f *testing.F) {
	for _, text := range []string{"localhost:80", "[::1]:80", "::1", "a.b.", "..", "[fe80::1%25eth0]", "127.0.0.1"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, ok := parseHost(text)
		if !ok {
			return
		}
		if again, ok := parseHost(net.JoinHostPort(got.host, got.port)); !ok || again != got {
			t.Errorf("%q is %+v, and then %+v", text, got, again)
		}
		local := isLocal(httptest.NewRequest(http.MethodGet, "/", nil), got.host)
		if local && strings.Contains(got.host, "example") && !strings.HasSuffix(got.host, ".localhost") {
			t.Errorf("%q is local", text)
		}
	})
}

// FuzzParseOrigin checks that the canonical form of an origin is one.
func FuzzParseOrigin(f *testing.F) {
	for _, text := range []string{"https://a.example", "http://[::1]:80", "null", "vscode-webview://x", "HTTP://A"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, ok := parseOrigin(text)
		if !ok || got.port == "" || strings.Contains(got.host, ":") {
			return
		}
		if again, ok := parseOrigin(got.String()); !ok || again != got {
			t.Errorf("%q is %+v, and then %+v", text, got, again)
		}
	})
}

// TestGuard: another handler gets what passes the same rules, and refusals go to its own function.
func TestGuard(t *testing.T) {
	var refused []int
	next := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) })
	refuse := func(w http.ResponseWriter, _ *http.Request, err error) {
		refused = append(refused, Status(err))
		w.WriteHeader(Status(err))
	}
	h, err := Guard(next, &art.HandlerOptions{Keys: []string{"k"}}, &GuardConfig{Refuse: refuse})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		host, key string
		want      int
	}{{"localhost", "k", http.StatusTeapot}, {"localhost", "other", http.StatusUnauthorized},
		{"evil.example", "k", http.StatusForbidden}} {
		r := httptest.NewRequest(http.MethodGet, "http://"+c.host+"/page", nil)
		r.Header.Set("X-Api-Key", c.key)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != c.want {
			t.Errorf("%+v: status %d", c, w.Code)
		}
	}
	if want := []int{http.StatusUnauthorized, http.StatusForbidden}; !slices.Equal(refused, want) {
		t.Errorf("refused %v, want %v", refused, want)
	}
	if _, err := Guard(next, &art.HandlerOptions{Hosts: []string{"*"}}, nil); !errors.Is(err, art.ErrInvalid) {
		t.Errorf("invalid options: %v", err)
	}
}
