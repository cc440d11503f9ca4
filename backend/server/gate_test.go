package server

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goart-dev/art"
)

// TestGate_Closed: a closed gate refuses requests in the form of their API, and readiness, but not health.
func TestGate_Closed(t *testing.T) {
	var gate Gate
	h := gate.Handler(guarded(t, reply(art.Message{Content: "Hi"}), &art.HandlerOptions{Keys: []string{"secret"}}))
	const url, key = "http://localhost", "X-Api-Key: secret"
	for _, closed := range []bool{false, true, false} {
		status, code := http.StatusOK, ""
		if gate.Open(); closed {
			gate.Close("the reason")
			status, code = http.StatusServiceUnavailable, "not_ready"
		}
		wantCode(t, "health", ask(h, "GET", url+"/health", ""), http.StatusOK, "")
		wantCode(t, "ready", ask(h, "GET", url+"/readyz", ""), status, code)
		w := ask(h, "POST", url+"/v1/chat/completions", hello(``), key)
		told := strings.Contains(w.Body.String(), "the reason") && w.Header().Get("Retry-After") != "" &&
			w.Header().Get("Connection") == "close"
		if told != closed {
			t.Errorf("closed %v: %v %s", closed, w.Header(), w.Body)
		}
		wantCode(t, "chat", w, status, code)
	}
	gate.Close("the reason")
	w := ask(h, "POST", url+"/v1/messages", `{}`, key)
	if !strings.Contains(w.Body.String(), `"type":"overloaded_error"`) {
		t.Errorf("not an error of Anthropic's API: %s", w.Body)
	}
	if n := gate.Running(); n != 0 {
		t.Errorf("%d requests are running", n)
	}
}

// TestGate_Wait: a request that was admitted is answered after Close, and Wait ends no earlier and no later.
func TestGate_Wait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := reply(art.Message{Content: "Hi"})
		complete, end := b.complete, make(chan struct{})
		b.complete = func(ctx context.Context, m *art.Model, req *art.ChatRequest) (*art.ChatResponse, error) {
			<-end
			return complete(ctx, m, req)
		}
		var gate Gate
		h := gate.Handler(guarded(t, b, nil))
		const url = "http://localhost/v1/chat/completions"
		answered, waited := false, false
		go func() {
			wantCode(t, "admitted", ask(h, "POST", url, hello(``)), http.StatusOK, "")
			answered = true
		}()
		synctest.Wait()
		gate.Close("the end")
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err := gate.Wait(ctx)
		if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "1 requests") {
			t.Errorf("error %v", err)
		}
		go func() {
			if err := gate.Wait(context.Background()); err != nil {
				t.Error(err)
			}
			waited = true
		}()
		synctest.Wait()
		wantCode(t, "late", ask(h, "POST", url, hello(``)), http.StatusServiceUnavailable, "not_ready")
		if answered || waited {
			t.Errorf("answered %v, waited %v", answered, waited)
		}
		close(end)
		synctest.Wait()
		if !answered || !waited {
			t.Errorf("answered %v, waited %v", answered, waited)
		}
	})
}
