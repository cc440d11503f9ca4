package art_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/internal/dev/arttest"
)

// statusError is like the error of openai-go for an error response: its text leaves the message out.
type statusError struct{ status, body string }

func (e *statusError) Error() string { return "OpenAI API error: " + e.status }

// ask sends a request, and returns an error response as a statusError.
func ask(ctx context.Context, m *art.Model, body string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://art.invalid/v1/chat/completions",
		strings.NewReader(body))
	if err != nil {
		return err
	}
	response, err := m.HTTPClient().Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = &statusError{response.Status, string(text)}
	}
	return err
}

const (
	goodRequest = `{"messages": [{"role": "user", "content": "a"}]}`
	badRequest  = `{"messages": []}`
)

// TestGather_FailureTellsTheAnswer: the Failure of a rollout whose client says only "400 Bad Request" says why.
func TestGather_FailureTellsTheAnswer(t *testing.T) {
	m := registered(t, &arttest.Backend{}, nil)
	rollouts := map[string]struct {
		run  func(ctx context.Context) error
		want string // in the message, after the client's own
	}{
		"refused": {func(ctx context.Context) error { return ask(ctx, m, badRequest) }, "no messages"},
		"recorded": {func(ctx context.Context) error {
			_, err := art.Record(ctx, func(ctx context.Context) error { return ask(ctx, m, badRequest) })
			return fmt.Errorf("my agent: %w", err)
		}, "no messages"},
		"answered since": {func(ctx context.Context) error {
			return errors.Join(ask(ctx, m, badRequest), ask(ctx, m, goodRequest))
		}, ""},
		"says it itself": {func(ctx context.Context) error {
			var status *statusError
			errors.As(ask(ctx, m, badRequest), &status)
			return errors.New("OpenAI API error: " + status.body)
		}, ""},
		"another error": {func(context.Context) error { return &statusError{"lost the game", ""} }, ""},
	}
	for name, rollout := range rollouts {
		t.Run(name, func(t *testing.T) {
			groups, err := art.GatherGroups(t.Context(), []int{0}, func(ctx context.Context, _ int) (*art.Trajectory, error) {
				return nil, rollout.run(ctx)
			}, &art.GatherOptions{GroupSize: 1, MaxFailures: 1})
			if err != nil {
				t.Fatal(err)
			}
			f := groups[0].Failures[0]
			added := strings.Count(f.Message, "the model's last answer was 400 Bad Request")
			if !strings.Contains(f.Message, "OpenAI API error") || !strings.Contains(f.Message, rollout.want) ||
				added != min(1, len(rollout.want)) {
				t.Errorf("message %q, want %q", f.Message, rollout.want)
			}
			if name == "refused" && f.Type != "*art_test.statusError" {
				t.Errorf("type %s", f.Type)
			}
		})
	}
}

// TestRecord_ErrorTellsTheAnswer: the same outside of a gather, and the client's error is still wrapped.
func TestRecord_ErrorTellsTheAnswer(t *testing.T) {
	m := registered(t, &arttest.Backend{}, nil)
	_, err := art.Record(t.Context(), func(ctx context.Context) error { return ask(ctx, m, badRequest) })
	var status *statusError
	if !errors.As(err, &status) || !strings.Contains(status.body, "no messages") {
		t.Fatalf("error %#v", err)
	}
	if want := "OpenAI API error: 400 Bad Request; the model's last answer was 400 Bad Request: art: complete: " +
		"invalid argument: no messages"; !strings.HasPrefix(err.Error(), want) {
		t.Errorf("got %s", err)
	}
	_, err = art.Record(t.Context(), func(context.Context) error { return nil })
	if !errors.Is(err, art.ErrNothingRecorded) || strings.Contains(err.Error(), "last answer") {
		t.Errorf("without an answer: %v", err)
	}
}

// A client may be made before the model is registered.
func TestModel_HTTPClient(t *testing.T) {
	m := art.NewModel("m", nil)
	client := m.HTTPClient()
	if err := m.Register(t.Context(), &arttest.Backend{Reply: arttest.Script("hi")}); err != nil {
		t.Fatal(err)
	}
	body := strings.NewReader(`{"messages":[{"role":"user","content":"u"}]}`)
	response, err := client.Post("http://art.invalid/v1/chat/completions", "application/json", body)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK || !strings.Contains(string(text), `"content":"hi"`) {
		t.Errorf("status %d, body %s, error %v", response.StatusCode, text, err)
	}
}

// closing reports whether it was closed.
type closing struct {
	io.Reader
	closed bool
}

func (c *closing) Close() error { c.closed = true; return nil }

func TestModel_HTTPClientClosesBody(t *testing.T) {
	body := &closing{Reader: strings.NewReader("{}")}
	_, err := art.NewModel("m", nil).HTTPClient().Post("http://art.invalid/", "application/json", body)
	if wantErr(t, err, art.ErrNotRegistered); !body.closed {
		t.Error("the body of a request that failed is open")
	}
}
