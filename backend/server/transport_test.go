package server

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/goart-dev/art"
)

// roundTrip sends a request to a handler function.
func roundTrip(t *testing.T, req *http.Request, h http.HandlerFunc) (*http.Response, error) {
	t.Helper()
	return Transport(h, "player").RoundTrip(req)
}

// newRequest makes a client's request.
func newRequest(t *testing.T, ctx context.Context, body io.Reader) *http.Request {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://any.test/v1/chat/completions?q=1", body)
	if err != nil {
		t.Fatal(err)
	}
	return req
}

// closeSpy is a body that records that it was closed.
type closeSpy struct {
	io.Reader
	closed chan struct{}
}

// spy makes a body.
func spy(r io.Reader) *closeSpy { return &closeSpy{r, make(chan struct{})} }

// Close panics when it is called twice.
func (s *closeSpy) Close() error {
	close(s.closed)
	return nil
}

// TestTransport_PinsTheModel checks that a client with another model's name, or none, is answered by the pinned model,
// and sees no other.
func TestTransport_PinsTheModel(t *testing.T) {
	b := reply(art.Message{Content: "Hi"})
	models := []*art.Model{register(t, b, "other"), register(t, b, "player")}
	var asked string
	complete := b.complete
	b.complete = func(ctx context.Context, m *art.Model, req *art.ChatRequest) (*art.ChatResponse, error) {
		asked = m.Name()
		return complete(ctx, m, req)
	}
	h := Routes(func() []*art.Model { return models }, nil)
	client := http.Client{Transport: Transport(h, "player")}
	for _, name := range []string{"gpt-4o", "other", "player@1", ""} {
		body := strings.Replace(hello(``), "player", name, 1)
		resp, err := client.Post("https://api.test/v1/chat/completions", "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(resp.Body)
		ok := err == nil && resp.StatusCode == http.StatusOK
		if !ok || asked != "player" || !strings.Contains(string(data), `"player@3"`) {
			t.Errorf("%q: status %d, answered by %q: %s %v", name, resp.StatusCode, asked, data, err)
		}
		resp.Body.Close()
	}
	resp, err := client.Get("https://api.test/v1/models")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	data, _ := io.ReadAll(resp.Body)
	if strings.Contains(string(data), "other") || !strings.Contains(string(data), "player") {
		t.Errorf("models: %s", data)
	}
	gone := http.Client{Transport: Transport(h, "gone")}
	resp, err = gone.Post("https://api.test/v1/chat/completions", "application/json", strings.NewReader(hello(``)))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusNotFound {
		t.Errorf("pinned to a model that is not served: status %d", resp.StatusCode)
	}
}

// TestTransport_Records checks that a recorder and a seed reach the model through a client: the recorded message is the
// sampled one.
func TestTransport_Records(t *testing.T) {
	h := newHandler(t, reply(art.Message{Content: "Hi"}))
	client := http.Client{Transport: Transport(h, "player")}
	trajectory, err := art.Record(context.Background(), func(ctx context.Context) error {
		resp, err := client.Do(newRequest(t, ctx, strings.NewReader(hello(``))))
		if err != nil {
			return err
		}
		return resp.Body.Close()
	})
	if err != nil {
		t.Fatal(err)
	}
	if samples := trajectory.Samples(); len(samples) != 1 || samples[0].Step != 3 || len(trajectory.Messages) != 2 {
		t.Errorf("recorded %+v", trajectory)
	}
}

// TestTransport_CarriesEverything checks that requests and responses arrive complete.
func TestTransport_CarriesEverything(t *testing.T) {
	type key struct{}
	ctx := context.WithValue(context.Background(), key{}, "value")
	req := newRequest(t, ctx, strings.NewReader("question"))
	req.Header.Add("X-Many", "a")
	req.Header.Add("X-Many", "b")
	resp, err := roundTrip(t, req, func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || string(body) != "question" || r.ContentLength != 8 {
			t.Errorf("body %q of length %d, %v", body, r.ContentLength, err)
		}
		if r.Context().Value(key{}) != "value" {
			t.Error("the context did not travel")
		}
		if r.Method != "POST" || r.Host != "any.test" || r.RequestURI != "/v1/chat/completions?q=1" ||
			len(r.Header["X-Many"]) != 2 {
			t.Errorf("got %s %s %s %v", r.Method, r.Host, r.RequestURI, r.Header)
		}
		w.Header().Add("X-Back", "c")
		w.Header().Add("X-Back", "d")
		w.WriteHeader(http.StatusEarlyHints)
		w.WriteHeader(http.StatusTeapot)
		w.Header().Set("X-Late", "e")
		_, _ = io.WriteString(w, "answer")
	})
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || string(body) != "answer" {
		t.Errorf("body %q, %v", body, err)
	}
	if resp.StatusCode != http.StatusTeapot || resp.Status != "418 I'm a teapot" || resp.Request != req {
		t.Errorf("got %s for %p, want 418 for %p", resp.Status, resp.Request, req)
	}
	if len(resp.Header["X-Back"]) != 2 || resp.Header.Get("X-Late") != "" {
		t.Errorf("headers %v", resp.Header)
	}
	if req.RequestURI != "" {
		t.Error("the client's request was changed")
	}
}

// TestTransport_Streams checks that what is written can be read while the handler still runs.
func TestTransport_Streams(t *testing.T) {
	read := make(chan struct{})
	resp, err := roundTrip(t, newRequest(t, context.Background(), nil), func(w http.ResponseWriter, _ *http.Request) {
		for i := range 3 {
			fmt.Fprintf(w, "line %d\n", i)
			<-read
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	for i := range 3 {
		if !lines.Scan() || lines.Text() != fmt.Sprintf("line %d", i) {
			t.Fatalf("got %q, %v", lines.Text(), lines.Err())
		}
		read <- struct{}{}
	}
	if lines.Scan() || lines.Err() != nil {
		t.Errorf("after the end: %q, %v", lines.Text(), lines.Err())
	}
}

// TestTransport_CancelUnblocks checks that the end of the context unblocks the client's wait for headers and body, and
// the handler's waits, reads and writes.
func TestTransport_CancelUnblocks(t *testing.T) {
	cases := map[string]func(w http.ResponseWriter, r *http.Request){
		"before the headers": func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
		"in the body": func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(w, "begin")
			<-r.Context().Done()
		},
		"reading the request": func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) },
		"writing": func(w http.ResponseWriter, _ *http.Request) {
			for {
				if _, err := io.WriteString(w, "more"); err != nil {
					return
				}
			}
		},
	}
	for name, serve := range cases {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
			defer cancel()
			ended := make(chan struct{})
			never, _ := io.Pipe()
			resp, err := roundTrip(t, newRequest(t, ctx, never), func(w http.ResponseWriter, r *http.Request) {
				defer close(ended)
				serve(w, r)
			})
			if err == nil {
				_, err = io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
			}
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("got %v", err)
			}
			<-ended
		})
	}
}

// TestTransport_CloseCancels checks that closing the body cancels the handler.
func TestTransport_CloseCancels(t *testing.T) {
	ended := make(chan error)
	resp, err := roundTrip(t, newRequest(t, context.Background(), nil), func(w http.ResponseWriter, r *http.Request) {
		w.(http.Flusher).Flush()
		<-r.Context().Done()
		_, err := io.WriteString(w, "nobody reads this")
		ended <- err
	})
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if err := <-ended; err == nil {
		t.Error("the handler could write to a closed body")
	}
}

// TestTransport_Panics checks that a panic is an error of the request, or of the response body.
func TestTransport_Panics(t *testing.T) {
	cause := errors.New("cause")
	early := func(http.ResponseWriter, *http.Request) { panic(cause) }
	_, err := roundTrip(t, newRequest(t, context.Background(), nil), early)
	if !errors.Is(err, cause) || !strings.Contains(err.Error(), "transport_test.go") {
		t.Errorf("before the headers: %v, want the cause and its stack", err)
	}
	resp, err := roundTrip(t, newRequest(t, context.Background(), nil), func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "begin")
		panic("late")
	})
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if string(data) != "begin" || err == nil || !strings.Contains(err.Error(), "late") {
		t.Errorf("after the headers: %q, %v", data, err)
	}
}

// TestTransport_ClosesTheRequest checks that the body of a request is closed once, whatever happens.
func TestTransport_ClosesTheRequest(t *testing.T) {
	cases := map[string]http.HandlerFunc{
		"unread": func(http.ResponseWriter, *http.Request) {},
		"closed": func(_ http.ResponseWriter, r *http.Request) { r.Body.Close() },
		"panic":  func(http.ResponseWriter, *http.Request) { panic("x") },
	}
	for name, h := range cases {
		body := spy(strings.NewReader("x"))
		if resp, err := roundTrip(t, newRequest(t, context.Background(), body), h); err == nil {
			resp.Body.Close()
		} else if name != "panic" {
			t.Errorf("%s: %v", name, err)
		}
		<-body.closed
	}
	body := spy(strings.NewReader("x"))
	if _, err := roundTrip(t, &http.Request{Body: body}, cases["unread"]); err == nil {
		t.Error("a request without a URL was served")
	}
	<-body.closed
}

// TestTransport_Head checks that the answer to HEAD has no body and does not wait for one to be read.
func TestTransport_Head(t *testing.T) {
	client := http.Client{Transport: Transport(newHandler(t, reply(art.Message{})), "player")}
	resp, err := client.Head("http://any.test/v1/models")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if data, err := io.ReadAll(resp.Body); len(data) > 0 || err != nil || resp.StatusCode != http.StatusOK {
		t.Errorf("status %d, body %q, %v", resp.StatusCode, data, err)
	}
}

// TestTransport_Concurrent sends concurrent requests, for the race detector; each must get its own response.
func TestTransport_Concurrent(t *testing.T) {
	client := http.Client{Transport: Transport(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(w, r.Body)
	}), "player")}
	var wg sync.WaitGroup
	for i := range 32 {
		wg.Go(func() {
			want := bytes.Repeat([]byte{byte('a' + i)}, 100_000)
			resp, err := client.Post("http://any.test/", "", bytes.NewReader(want))
			if err != nil {
				t.Error(err)
				return
			}
			defer resp.Body.Close()
			if got, err := io.ReadAll(resp.Body); err != nil || !bytes.Equal(got, want) {
				t.Errorf("request %d: %d bytes, %v", i, len(got), err)
			}
		})
	}
	wg.Wait()
}
