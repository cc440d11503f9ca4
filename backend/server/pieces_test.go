package server

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/internal/dev/arttest"
)

// failing is an driver.Streamer that fails after some pieces.
type failing struct {
	*arttest.Backend
	after int
	err   error
}

func (b *failing) Stream(
	ctx context.Context, m *art.Model, req *art.ChatRequest, piece func(art.Piece) error,
) (*art.ChatResponse, error) {
	pieces := 0
	return b.Backend.Stream(ctx, m, req, func(p art.Piece) error {
		if pieces == b.after {
			return b.err
		}
		pieces++
		return piece(p)
	})
}

// says returns a backend that always replies with m.
func says(m art.Message) *arttest.Backend {
	m.Role = art.RoleAssistant
	return &arttest.Backend{Reply: func(context.Context, *art.Model, *art.ChatRequest) (art.Message, error) {
		return m, nil
	}}
}

// serve listens with the routes of one model, "player".
func serve(t *testing.T, b art.Backend) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(newHandler(t, b))
	t.Cleanup(s.Close)
	return s
}

// An event arrives before the next piece is sampled, so a client sees tokens as they come.
func TestPieces_ArriveAtOnce(t *testing.T) {
	read := make(chan struct{})
	s := serve(t, &waiting{says(art.Message{Content: "Hello"}), read})
	resp, err := http.Post(s.URL+"/v1/chat/completions", "application/json", strings.NewReader(hello(`, "stream": true`)))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	text := ""
	for lines.Scan() {
		_, data, isEvent := strings.Cut(lines.Text(), "data: ")
		if !isEvent || data == "[DONE]" {
			continue
		}
		var chunk struct {
			Choices []struct{ Delta struct{ Content string } }
		}
		if err := json.Unmarshal([]byte(data), &chunk); err != nil {
			t.Fatal(err)
		}
		if piece := chunk.Choices[0].Delta.Content; piece != "" {
			text += piece
			read <- struct{}{}
		}
	}
	if err := lines.Err(); err != nil || text != "Hello" {
		t.Errorf("text %q, error %v", text, err)
	}
}

// waiting waits after each piece of text until it has been read.
type waiting struct {
	*arttest.Backend
	read chan struct{}
}

func (b *waiting) Stream(
	ctx context.Context, m *art.Model, req *art.ChatRequest, piece func(art.Piece) error,
) (*art.ChatResponse, error) {
	return b.Backend.Stream(ctx, m, req, func(p art.Piece) error {
		if err := piece(p); err != nil || p.Content == "" {
			return err
		}
		select {
		case <-b.read:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	})
}

// An error after the first event is an event, in the form of each API; one before it has a status.
func TestPieces_Errors(t *testing.T) {
	const failed = `{"error":{"message":"no device","type":"server_error","param":null,"code":null}}`
	broken := func(after int) *failing {
		return &failing{Backend: says(art.Message{Content: "Hello"}), after: after, err: errors.New("no device")}
	}
	w := post(newHandler(t, broken(3)), hello(`, "stream": true`))
	want := "data: " + failed + "\n\ndata: [DONE]\n\n"
	if got := w.Body.String(); w.Code != http.StatusOK || !strings.HasSuffix(got, want) ||
		!strings.Contains(got, `"content":"e"`) || strings.Contains(got, `"content":"l"`) {
		t.Errorf("status %d, %s", w.Code, got)
	}
	if w := post(newHandler(t, broken(0)), hello(`, "stream": true`)); w.Code != 500 || w.Body.String() != failed {
		t.Errorf("status %d, %s", w.Code, w.Body)
	}
}

// A client that goes away ends the sampling of its reply.
func TestPieces_ClientGone(t *testing.T) {
	b := &waiting{says(art.Message{Content: "Hello"}), make(chan struct{})}
	ended := make(chan error, 1)
	h := newHandler(t, b)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.ServeHTTP(w, r)
		ended <- r.Context().Err()
	}))
	defer s.Close()
	resp, err := http.Post(s.URL+"/v1/chat/completions", "application/json", strings.NewReader(hello(`, "stream": true`)))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(resp.Body, make([]byte, 10)); err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("the handler returned with the context %v", err)
	}
}

// Tokens are refused when a reply has none, before anything is sent.
func TestPieces_FrozenHasNoTokens(t *testing.T) {
	m := art.NewModel("player", &art.ModelOptions{Frozen: true})
	if err := m.Register(t.Context(), says(art.Message{Content: "Hi"})); err != nil {
		t.Fatal(err)
	}
	h := Routes(func() []*art.Model { return []*art.Model{m} }, nil)
	for _, stream := range []string{``, `, "stream": true`} {
		if w := post(h, hello(`, "return_token_ids": true`+stream)); w.Code != http.StatusBadRequest {
			t.Errorf("%s: status %d, %s", stream, w.Code, w.Body)
		}
	}
}
