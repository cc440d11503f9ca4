package server

import (
	"bytes"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/goart-dev/art"
)

// capturing serves a model with a capture, and returns how to send a request with headers.
func capturing(t *testing.T, opts CaptureOptions) (c *Capture, send func(path string, headers ...string) int) {
	t.Helper()
	c, err := NewCapture(opts)
	if err != nil {
		t.Fatal(err)
	}
	rollouts, err := NewRollouts(nil)
	if err != nil {
		t.Fatal(err)
	}
	m := register(t, &sampling{}, "player")
	h := Routes(func() []*art.Model { return []*art.Model{m} }, &Config{Capture: c, Rollouts: rollouts})
	info, err := rollouts.open(owner{}, m, &openRequest{Model: "player"})
	if err != nil {
		t.Fatal(err)
	}
	return c, func(path string, headers ...string) int {
		path = strings.ReplaceAll(path, "BASE", info.Base)
		body := strings.ReplaceAll(conversation("my number is 12"), "gpt-4o", "player")
		r := request(t.Context(), "any", "POST", path, body)
		for i := 0; i < len(headers); i += 2 {
			r.Header.Set(headers[i], headers[i+1])
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w.Code
	}
}

// Only what has consent is captured, redacted, and as examples and scenarios that can be read again.
func TestCapture_ConsentAndRedaction(t *testing.T) {
	var examples, scenarios bytes.Buffer
	_, send := capturing(t, CaptureOptions{
		Rate: 1, Examples: &examples, Scenarios: &scenarios,
		Redact: func(e *art.Example) bool {
			for i := range e.Messages {
				e.Messages[i].Content = strings.ReplaceAll(e.Messages[i].Content, "12", "NUMBER")
			}
			return e.Messages[1].Content != "2" // the second reply
		},
	})
	const chat = "/v1/chat/completions"
	for _, consent := range []string{"yes", "yes", "", "no", "Yes"} {
		if status := send(chat, captureHeader, consent); status != http.StatusOK {
			t.Fatalf("status %d", status)
		}
	}
	send("BASE"+chat, captureHeader, "yes") // has a rollout
	send("/v1/no/such/route", captureHeader, "yes")
	const asked = `{"messages":[{"role":"user","content":"my number is NUMBER"}`
	wantEqual(t, "examples", examples.String(),
		asked+`,{"role":"assistant","content":"1"}]}`+"\n"+asked+`,{"role":"assistant","content":"5"}]}`+"\n")
	wantEqual(t, "scenarios", scenarios.String(), strings.Repeat(asked+"]}\n", 2))
	var e art.Example
	line, _, _ := strings.Cut(examples.String(), "\n")
	if err := e.UnmarshalJSON([]byte(line)); err != nil || len(e.Messages) != 2 {
		t.Errorf("%d messages, error %v", len(e.Messages), err)
	}
}

// Of the requests with consent a fraction is captured; concurrent ones do not mix their lines.
func TestCapture_Rate(t *testing.T) {
	var out bytes.Buffer
	c, send := capturing(t, CaptureOptions{
		Rate: 0.25, Examples: &out, Consent: func(r *http.Request) bool { return r.Header.Get("X-Tenant") == "friend" },
	})
	var mu sync.Mutex
	n := 0
	c.rand = func() float64 { // 0, 0.1, ... 0.9, 0, ...
		mu.Lock()
		defer mu.Unlock()
		n++
		return float64((n-1)%10) / 10
	}
	var all sync.WaitGroup
	for range 100 {
		all.Go(func() { send("/v1/chat/completions", "X-Tenant", "friend") })
		all.Go(func() { send("/v1/chat/completions", "X-Tenant", "stranger") })
	}
	all.Wait()
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	wantEqual(t, "lines", len(lines), 30)
	for _, line := range lines {
		var e art.Example
		if err := e.UnmarshalJSON([]byte(line)); err != nil {
			t.Error(err)
		}
	}
}

// What a program of this process asks is its own affair: it has art.Record.
func TestCapture_LeavesOutThisProcess(t *testing.T) {
	var out bytes.Buffer
	c, err := NewCapture(CaptureOptions{Rate: 1, Examples: &out})
	if err != nil {
		t.Fatal(err)
	}
	m := register(t, &sampling{}, "player")
	h := Routes(func() []*art.Model { return []*art.Model{m} }, &Config{Capture: c})
	r := request(t.Context(), "any", "POST", "http://any/v1/chat/completions", conversation("go"))
	r.RequestURI = ""
	r.Header.Set(captureHeader, "yes")
	response, err := Transport(h, "player").RoundTrip(r)
	if err != nil || response.StatusCode != http.StatusOK || out.Len() != 0 {
		t.Errorf("error %v, captured %s", err, &out)
	}
	response.Body.Close()
}

// full is a disk without space.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no space left") }

// The client has its reply when the capture fails, and the log says why.
func TestCapture_WriteErrorIsLogged(t *testing.T) {
	var log bytes.Buffer
	c, err := NewCapture(CaptureOptions{Rate: 1, Examples: full{}})
	if err != nil {
		t.Fatal(err)
	}
	m := register(t, &sampling{}, "player")
	h := Routes(func() []*art.Model { return []*art.Model{m} },
		&Config{Capture: c, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	r := request(t.Context(), "any", "POST", "/v1/chat/completions", hello(""))
	r.Header.Set(captureHeader, "yes")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	if w.Code != http.StatusOK || !strings.Contains(log.String(), "no space left") {
		t.Errorf("status %d, log %q", w.Code, log.String())
	}
}

func TestNewCapture_ListsProblems(t *testing.T) {
	for _, rate := range []float64{0, -1, 1.5} {
		_, err := NewCapture(CaptureOptions{Rate: rate})
		if !errors.Is(err, art.ErrInvalid) || !strings.Contains(err.Error(), "Rate is") ||
			!strings.Contains(err.Error(), "both nil") {
			t.Errorf("rate %v: error is %v", rate, err)
		}
	}
}
