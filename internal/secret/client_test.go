package secret_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art/internal/secret"
	"github.com/goart-dev/art/internal/secret/secrettest"
)

// ask sends a request with the key in a header of any name.
func ask(t *testing.T, c *http.Client, address, header string) (*http.Response, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, address, strings.NewReader("body"))
	require.NoError(t, err)
	req.Header.Set(header, secrettest.Key)
	return c.Do(req)
}

// TestClient_Redirect: no redirect to another origin is followed, and none is hidden from the caller's own policy.
func TestClient_Redirect(t *testing.T) {
	for _, status := range []int{301, 302, 303, 307, 308} {
		address, got := secrettest.Redirecting(t, status)
		response, err := ask(t, secret.Client(nil), address, "X-Team")
		if err == nil {
			response.Body.Close()
		}
		require.ErrorAs(t, err, new(*secret.RedirectError), status)
		require.Zero(t, got(), status)
	}
	hops := 0
	home := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if hops++; r.URL.Path == "/a" {
			http.Redirect(w, r, "/b", http.StatusTemporaryRedirect)
		}
	}))
	defer home.Close()
	response, err := ask(t, secret.Client(nil), home.URL+"/a", "X-Team")
	require.NoError(t, err)
	response.Body.Close()
	require.Equal(t, 2, hops)
	own := errors.New("mine")
	response, err = ask(t, secret.Client(&http.Client{CheckRedirect: func(*http.Request, []*http.Request) error {
		return own
	}}), home.URL+"/a", "X-Team")
	if err == nil {
		response.Body.Close()
	}
	require.ErrorIs(t, err, own)
}

// TestSameOrigin: scheme, host and port make an origin, as browsers have it.
func TestSameOrigin(t *testing.T) {
	for _, c := range []struct {
		a, b string
		same bool
	}{
		{"https://host/a", "https://HOST:443/b?c", true}, {"http://host", "http://host:80", true},
		{"http://host", "https://host", false}, {"https://host", "https://host:8443", false},
		{"https://host", "https://sub.host", false}, {"https://host", "https://host.evil", false},
		{"https://host", "https://host@evil", false}, {"http://[::1]:80/", "http://[::1]/", true},
	} {
		a, err := url.Parse(c.a)
		require.NoError(t, err)
		b, err := url.Parse(c.b)
		require.NoError(t, err)
		require.Equal(t, c.same, secret.SameOrigin(a, b), "%s and %s", c.a, c.b)
	}
}

// TestClient_Echo: what a header of any name says is not in an answer that is no success; the rest of the answer is.
func TestClient_Echo(t *testing.T) {
	for _, status := range []int{301, 400, 401, 429, 500} {
		response, err := ask(t, secret.Client(nil), secrettest.Echoing(t, status), "X-Honeycomb-Team")
		require.NoError(t, err)
		body, err := io.ReadAll(response.Body)
		response.Body.Close()
		require.NoError(t, err)
		text := fmt.Sprint(response.Status, response.Header, string(body))
		require.Empty(t, secrettest.Leaks(text), text)
		require.Contains(t, text, "X-Honeycomb-Team: [redacted]")
		require.True(t, json.Valid(body), "%s", body)
	}
}

// TestClient_NoHTTP: a peer that speaks no HTTP is quoted in the error, without the key.
func TestClient_NoHTTP(t *testing.T) {
	listener, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	go func() {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		_, _ = conn.Read(make([]byte, 10))
		_, _ = io.WriteString(conn, secrettest.Key+" is no status\r\n\r\n")
		conn.Close()
	}()
	response, err := ask(t, secret.Client(nil), "http://"+listener.Addr().String(), "X-Api-Key")
	if err == nil {
		response.Body.Close()
	}
	require.ErrorContains(t, err, "malformed")
	require.Empty(t, secrettest.Leaks(err.Error()), err)
}

// TestClient_Large: an endless error is read to a bound.
func TestClient_Large(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusBadGateway)
		for {
			if _, err := w.Write(make([]byte, 1<<16)); err != nil {
				return
			}
		}
	}))
	defer server.Close()
	response, err := ask(t, secret.Client(nil), server.URL, "X-Api-Key")
	require.NoError(t, err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	require.Len(t, body, 64<<10)
}

// TestHide: a secret is found in the forms in which text is escaped, a short one as a word only, and nothing else.
func TestHide(t *testing.T) {
	for _, c := range []struct{ text, secret, want string }{
		{"a k/y+1234567 b", "k/y+1234567", "a [redacted] b"},
		{`{"m":"k\/y\u002b1234567"}`, "k/y+1234567", `{"m":"[redacted]"}`},
		{`{"m":"k\/y\u002B1234567"}`, "k/y+1234567", `{"m":"[redacted]"}`},
		{"?t=k%2Fy%2b1234567&x", "k/y+1234567", "?t=[redacted]&x"},
		{"k/y&#43;1234567 k/y&#x2b;1234567", "k/y+1234567", "[redacted] [redacted]"},
		{"100%25 of 100%", "100%25 of 100%", "[redacted]"},
		{"100%2525 of 100%25", "100%25 of 100%", "[redacted]"},
		{"k/y+123456", "k/y+1234567", "k/y+123456"},
		{"prod product", "prod", "[redacted] product"},
		{"abc", "abc", "abc"},
		{"hunter2", "hunter2", "[redacted]"},
		{`%`, "%%%%", `%`}, {`\u00`, `\u00zz`, `\u00`}, {"&amp", "&amp;", "&amp"},
	} {
		require.Equal(t, c.want, secret.Hide(c.text, []string{c.secret}), c.text)
	}
	require.Equal(t, "[redacted] [redacted]", secret.Hide("longer-secret secret", []string{"secret", "longer-secret"}))
}

// FuzzHide: a text in which a secret was hidden has it no more, plain or escaped, and hiding twice is hiding once.
func FuzzHide(f *testing.F) {
	f.Add("a", "secret-of-a-service", "b")
	f.Add(`\`, `a%\&"+12345`, "%2")
	f.Fuzz(func(t *testing.T, before, key, after string) {
		if len(key) < 10 || strings.Contains(key, "redacted") {
			return
		}
		quoted, _ := json.Marshal(key)
		text := before + " " + key + " " + after + url.QueryEscape(key) + string(quoted)
		hidden := secret.Hide(text, []string{key})
		if strings.Contains(hidden, key) {
			t.Errorf("%q in %q is %q", key, text, hidden)
		}
		if again := secret.Hide(hidden, []string{key}); again != hidden {
			t.Errorf("%q, then %q", hidden, again)
		}
	})
}
