package tinker_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/driver"
	"github.com/goart-dev/art/backend/loop"
	"github.com/goart-dev/art/backend/server/tinker"
	client "github.com/goart-dev/art/backend/tinker"
	"github.com/goart-dev/art/grpo/credit"
	"github.com/goart-dev/art/internal/dev/arttest"
)

// words is a tokenizer of letters, whose ids are below 128, with a chat template.
func words(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	var vocab strings.Builder
	for id := range 127 {
		if id > 0 {
			vocab.WriteString(",")
		}
		vocab.WriteString(`"` + letter(id) + `":` + strconv.Itoa(id))
	}
	write := func(name, content string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("tokenizer.json", `{"version":"1.0","added_tokens":[{"id":127,"content":"<|end|>","special":true}],
		"model":{"type":"BPE","vocab":{`+vocab.String()+`},"merges":[]}}`)
	write("tokenizer_config.json", `{"eos_token":"<|end|>","chat_template":`+
		`"{% for m in messages %}{{ m.content }}<|end|>{% endfor %}"}`)
	return dir
}

func letter(id int) string {
	switch {
	case id < 33:
		return "x" + strconv.Itoa(id)
	case id == '"' || id == '\\':
		return `\` + string(rune(id))
	}
	return string(rune(id))
}

// serve serves a fake backend, and returns its address. around may be nil.
func serve(t testing.TB, around func(http.Handler) http.Handler) string {
	t.Helper()
	return serveOf(t, &arttest.Backend{}, around)
}

// serveOf serves a backend.
func serveOf(t testing.TB, b tinker.Backend, around func(http.Handler) http.Handler) string {
	t.Helper()
	s, err := tinker.New(b, &tinker.Options{
		Dir: t.TempDir(), Bases: []tinker.Base{{Name: "org/fake", Model: "tiny"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	h, err := s.Handler(&art.HandlerOptions{Keys: []string{"tml-secret"}})
	if err != nil {
		t.Fatal(err)
	}
	if around != nil {
		h = around(h)
	}
	web := httptest.NewServer(h)
	t.Cleanup(func() {
		web.Close()
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return web.URL
}

// open registers a model.
func open(t testing.TB, opts client.Options) (*client.Backend, *art.Model) {
	t.Helper()
	b, err := client.Open(t.Context(), &opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close() })
	m := art.NewModel("player", &art.ModelOptions{Base: "org/fake"})
	if err := m.Register(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	return b, m
}

// data are two data, one of them with positions without a target.
func data(policy bool) []loop.Datum {
	list := []loop.Datum{
		{Input: []int32{65, 66, 67}, Targets: []int32{loop.NoTarget, 67, 68}},
		{Input: []int32{70}, Targets: []int32{71}},
	}
	for i := range list {
		for j := range list[i].Targets {
			if policy {
				list[i].Logprobs = append(list[i].Logprobs, -1.25-float32(j)/8)
				list[i].Advantages = append(list[i].Advantages, 0.5-float32(i))
			} else {
				list[i].Weights = append(list[i].Weights, float32(j)-0.25)
			}
		}
	}
	return list
}

// train does two steps with each loss, and returns every result.
func train(t *testing.T, m *art.Model) (out []any) {
	t.Helper()
	ctx := t.Context()
	for _, loss := range []credit.Loss{credit.CrossEntropy, credit.ImportanceSampling, credit.PPO, credit.CISPO} {
		for range 2 {
			r, err := loop.ForwardBackward(ctx, m, data(loss != credit.CrossEntropy), loss, nil)
			if err != nil {
				t.Fatal(loss, err)
			}
			adam := loop.DefaultAdamW()
			adam.LearningRate = 0.125
			o, err := loop.OptimStep(ctx, m, adam)
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, r.Loss, r.Logprobs, o.GradNorm)
		}
	}
	if _, err := m.Publish(ctx, nil, map[string]float64{"loss": 1}); err != nil {
		t.Fatal(err)
	}
	return out
}

// TestParity: over the protocol, in both dialects, every number is the one of the backend itself.
func TestParity(t *testing.T) {
	m := art.NewModel("player", &art.ModelOptions{Base: "org/fake"})
	if err := m.Register(t.Context(), &arttest.Backend{}); err != nil {
		t.Fatal(err)
	}
	want := train(t, m)
	address, tokens := serve(t, nil), words(t)
	for _, json := range []bool{false, true} {
		_, m := open(t, client.Options{BaseURL: address, Key: "tml-secret", Tokenizer: tokens, Dir: t.TempDir(), JSON: json})
		if got := train(t, m); !reflect.DeepEqual(got, want) {
			t.Errorf("JSON %v: got\n%v\nwant\n%v", json, got, want)
		}
	}
}

// TestLostAnswers: answers that are lost, and errors of a proxy, change nothing.
func TestLostAnswers(t *testing.T) {
	tokens := words(t)
	_, m := open(t, client.Options{BaseURL: serve(t, nil), Key: "tml-secret", Tokenizer: tokens, Dir: t.TempDir()})
	want := train(t, m)
	var n atomic.Int64
	address := serve(t, func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch n.Add(1) % 9 {
			case 3: // it is served, and the answer is lost
				h.ServeHTTP(httptest.NewRecorder(), r)
				panic(http.ErrAbortHandler)
			case 6:
				w.WriteHeader(http.StatusBadGateway)
			default:
				h.ServeHTTP(w, r)
			}
		})
	})
	_, m = open(t, client.Options{BaseURL: address, Key: "tml-secret", Tokenizer: tokens, Dir: t.TempDir()})
	if got := train(t, m); !reflect.DeepEqual(got, want) {
		t.Errorf("got\n%v\nwant\n%v", got, want)
	}
}

// TestResume: another process continues at the newest step, with its optimizer.
func TestResume(t *testing.T) {
	address, tokens := serve(t, nil), words(t)
	dir := t.TempDir()
	opts := client.Options{BaseURL: address, Key: "tml-secret", Tokenizer: tokens, Dir: dir}
	first, m := open(t, opts)
	train(t, m)
	want, err := loop.Forward(t.Context(), m, data(false), credit.CrossEntropy, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	second, m := open(t, opts)
	if m.Step() != 1 {
		t.Errorf("the step is %d, want 1", m.Step())
	}
	got, err := loop.Forward(t.Context(), m, data(false), credit.CrossEntropy, nil)
	if err != nil || !reflect.DeepEqual(got.Logprobs, want.Logprobs) {
		t.Errorf("%v: %v, want %v", err, got, want)
	}
	rows, err := second.History(t.Context(), m)
	if err != nil || len(rows) != 1 {
		t.Errorf("%v: rows %v", err, rows)
	}
}

// TestChat: a reply has the exact tokens, and the step that has sampled them.
func TestChat(t *testing.T) {
	_, m := open(t, client.Options{BaseURL: serve(t, nil), Key: "tml-secret", Tokenizer: words(t), Dir: t.TempDir()})
	conversation := art.NewTrajectory(art.User("hello"))
	reply, err := m.Chat(t.Context(), conversation, nil)
	if err != nil {
		t.Fatal(err)
	}
	s := conversation.Messages[1].Sample
	if s == nil || len(s.IDs) == 0 || len(s.IDs) != len(s.Logprobs) || reply.Content == "" {
		t.Fatalf("%+v", conversation.Messages)
	}
	if want := []int32{'h', 'e', 'l', 'l', 'o', 127}; !reflect.DeepEqual(s.PromptIDs, want) {
		t.Errorf("prompt %v, want %v", s.PromptIDs, want)
	}
	logprobs, step, err := m.Backend().(driver.Sampler).Logprobs(t.Context(), m, s.PromptIDs)
	if err != nil || step != 0 || len(logprobs) != len(s.PromptIDs)-1 {
		t.Errorf("%v, step %d: %v", err, step, logprobs)
	}
}

// TestChat_LostSample: a sample that the service has lost is asked for again.
func TestChat_LostSample(t *testing.T) {
	var lost atomic.Int64
	address := serve(t, func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.HasSuffix(r.URL.Path, "/asample") && lost.Add(1) <= 2 {
				w.WriteHeader(http.StatusGone)
				_, _ = w.Write([]byte(`{"detail":"gone"}`))
				return
			}
			h.ServeHTTP(w, r)
		})
	})
	_, m := open(t, client.Options{BaseURL: address, Key: "tml-secret", Tokenizer: words(t), Dir: t.TempDir()})
	if _, err := m.Chat(t.Context(), art.NewTrajectory(art.User("hello")), nil); err != nil || lost.Load() != 3 {
		t.Errorf("%v after %d requests", err, lost.Load())
	}
}

// TestService_Errors: what a service may answer, and what is said of it.
func TestService_Errors(t *testing.T) {
	for name, test := range map[string]struct {
		status int
		body   string
		want   error
		text   string
	}{
		"unpaid":      {http.StatusPaymentRequired, `{"detail":"no money"}`, client.ErrService, "paid"},
		"wrong key":   {http.StatusUnauthorized, `{"detail":"who?"}`, client.ErrService, "Options.Key"},
		"no service":  {http.StatusNotFound, `<html>`, client.ErrService, "BaseURL"},
		"half a body": {http.StatusOK, `{"session_id":`, client.ErrService, "cannot be read"},
		"no session":  {http.StatusOK, `{}`, client.ErrService, "session_id"},
	} {
		t.Run(name, func(t *testing.T) {
			web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(test.status)
				_, _ = w.Write([]byte(test.body))
			}))
			defer web.Close()
			_, err := client.Open(context.Background(), &client.Options{BaseURL: web.URL, Key: "tml-x", Tokenizer: "none"})
			if !errors.Is(err, test.want) || !strings.Contains(err.Error(), test.text) ||
				strings.Contains(err.Error(), "tml-x") {
				t.Errorf("got %v, want %q", err, test.text)
			}
		})
	}
}
