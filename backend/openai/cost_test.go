package openai_test

import (
	"errors"
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/hosted"
	"github.com/goart-dev/art/backend/openai"
)

// prices: the answer of said costs (800x2 + 200x1 + 500x4)/1e6 = 0.0038.
var prices = hosted.Prices{"m": {Prompt: 2, CachedPrompt: 1, Completion: 4}}

func TestUsage(t *testing.T) {
	const each = 0.0038
	b := open(t, newServer(t, said("Hi.")), openai.Options{Prices: prices})
	dated, unknown := register(t, b, "m-2026-01-31"), art.NewModel("unknown", &art.ModelOptions{Base: "n"})
	if err := unknown.Register(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	for _, m := range []*art.Model{dated, dated, unknown} {
		if _, err := complete(t, m, nil); err != nil {
			t.Fatal(err)
		}
	}
	total := b.Usage()
	if math.Abs(total.Cost-2*each) > 1e-12 || total.UnknownCost != 1 || total.Requests != 3 || total.PromptTokens != 3000 {
		t.Errorf("usage %+v", total)
	}
	if u, err := b.ModelUsage(unknown); err != nil || u.UnknownCost != 1 || u.Cost != 0 {
		t.Errorf("usage %+v, error %v", u, err)
	}
	for _, m := range []*art.Model{dated, unknown} {
		if err := m.Log(t.Context(), "val", nil, nil); err != nil {
			t.Fatal(err)
		}
	}
	rows, err := b.History(t.Context(), dated)
	if cost, ok := art.Logged(rows, "costs/total", 0); err != nil || !ok || math.Abs(cost-2*each) > 1e-12 {
		t.Errorf("cost %v, error %v, rows %v", cost, err, rows)
	}
	rows, err = b.History(t.Context(), unknown)
	if _, ok := art.Logged(rows, "costs/total", 0); err != nil || ok {
		t.Errorf("an unknown cost was logged: %v, error %v", rows, err)
	}
}

// TestUsage_Restart: what a run logs goes on where the process before stopped.
func TestUsage_Restart(t *testing.T) {
	dir, s := t.TempDir(), newServer(t, said("Hi."))
	for processes := 1; processes <= 3; processes++ {
		b := open(t, s, openai.Options{Prices: prices, Dir: dir})
		m := register(t, b, "m")
		if _, err := complete(t, m, nil); err != nil {
			t.Fatal(err)
		}
		if err := m.Log(t.Context(), "val", nil, nil); err != nil {
			t.Fatal(err)
		}
		rows, err := b.History(t.Context(), m)
		each := map[string]float64{"costs/total": 0.0038, "costs/requests": 1, "costs/prompt_tokens": 1000}
		for key, want := range each {
			want *= float64(processes)
			if got, ok := art.Logged(rows, key, 0); err != nil || !ok || math.Abs(got-want) > 1e-9 {
				t.Errorf("process %d: %s is %v, want %v (error %v)", processes, key, got, want, err)
			}
		}
		b.Close()
	}
}

func TestMaxSpend(t *testing.T) {
	s := newServer(t, said("Hi."))
	b := open(t, s, openai.Options{Prices: prices, MaxSpend: 0.012, MaxConcurrent: 2})
	m := register(t, b, "m")
	limit := 100
	var refused sync.Map
	var all sync.WaitGroup
	for i := range 30 {
		all.Go(func() {
			if _, err := complete(t, m, &art.ChatOptions{MaxTokens: &limit}); err != nil {
				refused.Store(i, err)
			}
		})
	}
	all.Wait()
	refused.Range(func(_, err any) bool {
		if err := err.(error); !errors.Is(err, hosted.ErrSpendingLimit) || !errors.As(err, new(*art.Error)) {
			t.Errorf("error %v", err)
		}
		return true
	})
	// The estimate, 0.0004, is less than the cost: the last two calls, which are in flight at once, may pass the limit.
	if u := b.Usage(); u.Cost < 0.0115 || u.Cost > 0.012+2*0.0038 {
		t.Errorf("usage %+v", u)
	}
	calls := s.calls()
	if _, err := complete(t, m, nil); !errors.Is(err, hosted.ErrSpendingLimit) || s.calls() != calls {
		t.Errorf("error %v, %d calls", err, s.calls()-calls)
	}
}

func TestMaxSpend_NeedsPrices(t *testing.T) {
	s := newServer(t, said("Hi."))
	b := open(t, s, openai.Options{Prices: prices, MaxSpend: 1})
	if _, err := complete(t, register(t, b, "unknown"), nil); !errors.Is(err, art.ErrInvalid) || s.calls() != 0 {
		t.Errorf("error %v, %d calls", err, s.calls())
	}
}

// TestMaxSpend_WithoutCounts: what is not counted is charged to the limit by its estimate.
func TestMaxSpend_WithoutCounts(t *testing.T) {
	s := newServer(t, reply(200, `{"choices":[{"message":{"role":"assistant","content":"Hi."}}]}`))
	b := open(t, s, openai.Options{Prices: prices, MaxSpend: 0.008})
	m := register(t, b, "m") // 1024 tokens are assumed: 0.0041
	_, first := complete(t, m, nil)
	_, second := complete(t, m, nil)
	if first != nil || !errors.Is(second, hosted.ErrSpendingLimit) || b.Usage().UnknownCost != 1 || b.Usage().Cost != 0 {
		t.Errorf("errors %v and %v, usage %+v", first, second, b.Usage())
	}
}

func TestPrices_Invalid(t *testing.T) {
	for _, x := range []float64{-1, math.NaN(), math.Inf(1)} {
		_, err := openai.Open(t.Context(), &openai.Options{Key: key, Prices: hosted.Prices{"bad": {Completion: x}}})
		if !errors.Is(err, art.ErrInvalid) || !strings.Contains(err.Error(), `"bad"`) {
			t.Errorf("%v: error %v", x, err)
		}
	}
}

func TestRequestsPerMinute(t *testing.T) {
	s := newServer(t, said("Hi."))
	b := open(t, s, openai.Options{RequestsPerMinute: 2, Timeout: time.Second})
	m := register(t, b, "m")
	for range 2 {
		if _, err := complete(t, m, nil); err != nil {
			t.Fatal(err)
		}
	}
	done := make(chan error)
	go func() { _, err := complete(t, m, nil); done <- err }()
	select {
	case err := <-done:
		t.Errorf("a third request was sent in the same minute: %v", err)
	case <-time.After(30 * time.Millisecond):
		b.Close()
		<-done
	}
}

func TestContextLength(t *testing.T) {
	s := newServer(t, said("Hi."))
	b := open(t, s, openai.Options{})
	long := func(base string, words int) error {
		m := art.NewModel(strings.ReplaceAll(base, "/", "-"), &art.ModelOptions{Base: base, Project: t.Name() + base[:1]})
		if err := m.Register(t.Context(), b); err != nil {
			t.Fatal(err)
		}
		message := art.User(strings.Repeat(" word", words))
		_, err := m.Complete(t.Context(), &art.History{Messages: []art.Message{message}}, nil)
		return err
	}
	if err := long("gpt-4-0613", 8185); err != nil { // 8185 + 3 + 3 < 8192
		t.Errorf("a prompt that fits: %v", err)
	}
	if err := long("gpt-4", 8186); !errors.Is(err, art.ErrContextLength) || s.calls() != 1 {
		t.Errorf("%d calls, error %v", s.calls(), err)
	}
	if err := long("gpt-5.9", 500000); err != nil {
		t.Errorf("a model whose context is not known: %v", err)
	}
	b = open(t, s, openai.Options{ContextLength: 100})
	if err := long("unknown", 330); !errors.Is(err, art.ErrContextLength) { // 1650 bytes are more than 100 tokens
		t.Errorf("error %v", err)
	}
	if err := long("other", 300); err != nil {
		t.Errorf("1500 bytes may be less than 100 tokens: %v", err)
	}
}
