// Package secrettest has peers for tests that are after the credentials of a client.
package secrettest

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
)

// Key is a credential that no text can have by chance.
const Key = "k3y+/for=the-right:host"

// Redirecting starts a server that redirects every request to another, at another port, and returns its URL. got says
// how many requests have arrived there.
func Redirecting(t *testing.T, status int) (url string, got func() int) {
	t.Helper()
	var n atomic.Int64
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { n.Add(1) }))
	t.Cleanup(other.Close)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, other.URL+r.URL.Path, status)
	}))
	t.Cleanup(server.Close)
	return server.URL, func() int { return int(n.Load()) }
}

// Echoing starts a server that answers with a status, and with what every header of the request says: plain, decoded,
// and with characters escaped; as the message of an error in the forms of several services.
func Echoing(t *testing.T, status int) (url string) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var all []string
		for name, values := range r.Header {
			for _, value := range values {
				all = append(all, name+": "+value)
				if _, rest, ok := strings.Cut(value, " "); ok {
					plain, _ := base64.StdEncoding.DecodeString(rest)
					all = append(all, "so "+rest, "or "+string(plain))
				}
			}
		}
		text := strings.ToValidUTF8(strings.Join(all, "; "), "?")
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("X-Error-Message", text)
		w.WriteHeader(status)
		data, err := json.Marshal(map[string]any{
			"error": map[string]any{"message": text, "code": text}, "errors": []map[string]any{{"message": text}},
			"error_code": "BAD", "message": text, "detail": text,
			"partialSuccess": map[string]any{"rejectedSpans": "1", "rejectedDataPoints": "1", "errorMessage": text},
		})
		if err != nil {
			panic(err)
		}
		_, _ = w.Write([]byte(strings.NewReplacer("k3y", `\u006b3y`, "/", `\/`).Replace(string(data))))
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// Leaks returns the form in which a text has the key, "" for none.
func Leaks(text string) string {
	basic := base64.StdEncoding.EncodeToString([]byte("api:" + Key))
	for _, form := range []string{Key, basic, Key[:12], basic[:20], "6b3y", "k3y%2B"} {
		if strings.Contains(text, form) {
			return form
		}
	}
	return ""
}

// Check has use send its [Key] to servers that redirect to another, and to servers that repeat it. use returns all that
// a user gets to read: an error, and a log.
func Check(t *testing.T, use func(t *testing.T, url string) (log string, err error)) {
	t.Helper()
	for _, status := range []int{http.StatusFound, http.StatusTemporaryRedirect} {
		url, got := Redirecting(t, status)
		log, err := use(t, url)
		if err == nil || got() > 0 || !strings.Contains(err.Error(), "redirects to") {
			t.Errorf("redirect %d: %d requests arrive at another host; error %v", status, got(), err)
		}
		report(t, err, log)
	}
	for _, status := range []int{http.StatusOK, http.StatusBadRequest, http.StatusUnauthorized} {
		log, err := use(t, Echoing(t, status))
		if err == nil && status != http.StatusOK {
			t.Errorf("status %d: no error", status)
		}
		report(t, err, log)
	}
}

// report fails the test where the key is to be read.
func report(t *testing.T, err error, log string) {
	t.Helper()
	if err != nil {
		log += err.Error()
	}
	if form := Leaks(log); form != "" {
		t.Errorf("%q is in %s", form, log)
	}
}
