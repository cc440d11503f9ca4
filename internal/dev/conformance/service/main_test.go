package main

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/goart-dev/art"
)

// client has a timeout, so that a service in a deadlock fails a test instead of blocking it.
var client = http.Client{Timeout: time.Minute}

// reply is the response of the service: of an answer the model, of a training its result.
type reply struct {
	Model string
	art.TrainResult
}

// start runs the service. stop ends it, and wait returns the result of serve.
func start(
	t *testing.T, dir string, progress func(art.TrainProgress),
) (address string, stop func(), wait func() error) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- serve(ctx, listener, dir, progress) }()
	wait = sync.OnceValue(func() error { return <-done })
	t.Cleanup(func() {
		stop()
		if err := wait(); err != nil {
			t.Errorf("the service ended with %v", err)
		}
	})
	return "http://" + listener.Addr().String(), stop, wait
}

// post sends a form and decodes the reply. It may be called from any goroutine.
func post(t *testing.T, address, question string) reply {
	return decode(t,
		func() (*http.Response, error) { return client.PostForm(address, url.Values{"question": {question}}) })
}

// decode makes a request, which must succeed, and decodes the reply.
func decode(t *testing.T, request func() (*http.Response, error)) (got reply) {
	response, err := request()
	if err != nil {
		t.Error(err)
		return got
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode == http.StatusOK {
		err = json.Unmarshal(body, &got)
	}
	if err != nil || response.StatusCode != http.StatusOK {
		t.Errorf("%s: %v, %s", response.Request.URL, err, body)
	}
	return got
}

// TestService asks, trains and asks again. Requests during the training are answered by the previous step.
func TestService(t *testing.T) {
	var address string
	during := 0
	address, _, _ = start(t, t.TempDir(), func(art.TrainProgress) {
		during++ // the training is in progress: an answer that waited for it would never come
		if got := post(t, address+"/ask", "yes or no"); got.Model != "agent@0" {
			t.Errorf("during the training, %q answered", got.Model)
		}
	})
	if got := post(t, address+"/ask", "yes or no"); got.Model != "agent@0" {
		t.Errorf("before the training, %q answered", got.Model)
	}
	stop := askOn(t, address)
	got := post(t, address+"/train", "")
	stop()
	if got.Step != 1 || got.Metrics["data/tokens_trained"] == 0 {
		t.Errorf("trained %+v, want step 1 of some tokens", got)
	}
	if during == 0 {
		t.Error("the training told no progress")
	}
	if got := post(t, address+"/ask", "yes or no"); got.Model != "agent@1" {
		t.Errorf("after the training, %q answered", got.Model)
	}
	const body = `{"model": "agent", "messages": [{"role": "user", "content": "yes or no"}]}`
	chat := func() (*http.Response, error) {
		return client.Post(address+"/v1/chat/completions", "application/json", strings.NewReader(body))
	}
	if got := decode(t, chat); got.Model != "agent@1" {
		t.Errorf("/v1/ is answered by %q", got.Model)
	}
}

// askOn asks without a pause until stop is called. All must be answered.
func askOn(t *testing.T, address string) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	var askers sync.WaitGroup
	for range 2 {
		askers.Go(func() {
			for ctx.Err() == nil {
				if got := post(t, address+"/ask", "maybe, yes or no?"); got.Model != "agent@0" && got.Model != "agent@1" {
					t.Errorf("meanwhile, %q answered", got.Model)
					return
				}
			}
		})
	}
	return func() { cancel(); askers.Wait() }
}

// TestService_Stops ends the service in the middle of a training: the step is made, the client is told, and the next
// start continues from there.
func TestService_Stops(t *testing.T) {
	dir := t.TempDir()
	var stop func()
	underWay := false
	address, stop, wait := start(t, dir, func(art.TrainProgress) {
		underWay = true
		stop()
	})
	if got := post(t, address+"/train", ""); got.Step != 1 || !underWay {
		t.Errorf("the training made step %d, want 1; it was stopped while under way: %t", got.Step, underWay)
	}
	stop()
	if err := wait(); err != nil {
		t.Fatalf("the service ended with %v", err)
	}
	if _, err := client.Get(address); err == nil {
		t.Error("the service still answers")
	}
	address, _, _ = start(t, dir, nil)
	if got := post(t, address+"/ask", "yes or no"); got.Model != "agent@1" {
		t.Errorf("after the restart, %q answered", got.Model)
	}
}

// TestService_Error tells a client what went wrong.
func TestService_Error(t *testing.T) {
	address, _, _ := start(t, t.TempDir(), nil)
	response, err := client.PostForm(address+"/ask", url.Values{"question": {strings.Repeat("word ", 100)}})
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, _ := io.ReadAll(response.Body)
	if response.StatusCode != http.StatusInternalServerError || !strings.Contains(string(body), "context") {
		t.Errorf("a question that is too long: %s, %s", response.Status, body)
	}
}
