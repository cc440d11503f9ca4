package hosted

import (
	"errors"
	"math"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/goart-dev/art"
)

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	for _, test := range []struct {
		name, header, value string
		want                time.Duration
		ok                  bool
	}{
		{"seconds", "Retry-After", "3", 3 * time.Second, true},
		{"a fraction", "Retry-After", "0.5", time.Second / 2, true},
		{"negative", "Retry-After", "-3", 0, true},
		{"NaN", "Retry-After", "NaN", 0, true},
		{"too many", "Retry-After", "1e300", 24 * time.Hour, true},
		{"a date", "Retry-After", now.Add(time.Minute).Format(http.TimeFormat), time.Minute, true},
		{"a date in the past", "Retry-After", now.Add(-time.Minute).Format(http.TimeFormat), 0, true},
		{"milliseconds", "Retry-After-Ms", "250", time.Second / 4, true},
		{"text", "Retry-After", "soon", 0, false},
		{"none", "X", "", 0, false},
	} {
		header := http.Header{}
		header.Set(test.header, test.value)
		if got, ok := retryAfter(header, now); got != test.want || ok != test.ok {
			t.Errorf("%s: %v, %v; want %v, %v", test.name, got, ok, test.want, test.ok)
		}
	}
}

// TestBackoff: waits double, are spread over half of the time, and are bounded.
func TestBackoff(t *testing.T) {
	b := &Backend{opts: Options{Backoff: time.Second, MaxWait: 10 * time.Second, Retries: 100}}
	for n, most := range []time.Duration{1, 2, 4, 8, 10, 10} {
		for range 100 {
			wait, again := b.again(errors.New("reset"), n)
			if !again || wait < most*time.Second/2 || wait > most*time.Second {
				t.Fatalf("retry %d waits %v", n+1, wait)
			}
		}
	}
	if wait, again := b.again(errors.New("reset"), 99); !again || wait > 10*time.Second || wait < 5*time.Second {
		t.Errorf("retry 100 waits %v", wait)
	}
	if _, again := b.again(errors.New("reset"), 100); again {
		t.Error("101 retries")
	}
}

func TestWindow(t *testing.T) {
	for _, test := range []struct {
		name             string
		requests, tokens int
		sizes            []int // of requests
		want             []int // seconds after which each is sent
	}{
		{"requests", 2, 0, []int{9, 9, 9, 9, 9}, []int{0, 0, 60, 60, 120}},
		{"tokens", 0, 10, []int{4, 4, 4, 4, 8}, []int{0, 0, 60, 60, 120}},
		{"larger than the limit", 0, 10, []int{4, 40, 1}, []int{0, 60, 120}},
		{"none", 0, 0, []int{4, 40, 1}, []int{0, 0, 0}},
	} {
		synctest.Test(t, func(t *testing.T) {
			w, start := newWindow(test.requests, test.tokens), time.Now()
			for i, size := range test.sizes {
				if _, err := w.enter(t.Context(), size); err != nil {
					t.Fatal(err)
				}
				if got := int(time.Since(start).Seconds()); got != test.want[i] {
					t.Errorf("%s: request %d was sent after %d s, want %d", test.name, i, got, test.want[i])
				}
			}
		})
	}
}

// TestWindow_Settles: what a request really took replaces its estimate.
func TestWindow_Settles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, start := newWindow(0, 10), time.Now()
		s, err := w.enter(t.Context(), 10)
		if err != nil {
			t.Fatal(err)
		}
		w.settle(s, 2)
		if _, err := w.enter(t.Context(), 8); err != nil || time.Since(start) > 0 {
			t.Errorf("sent after %v, error %v", time.Since(start), err)
		}
	})
}

func TestPrice(t *testing.T) {
	u := art.Usage{PromptTokens: 1000, CachedTokens: 400, CompletionTokens: 10}
	for _, test := range []struct {
		price Price
		want  float64
	}{
		{Price{Prompt: 3, CachedPrompt: 1, Completion: 5}, (600*3 + 400*1 + 10*5) / 1e6},
		{Price{Prompt: 3, Completion: 5}, (1000*3 + 10*5) / 1e6},
		{Price{}, 0},
	} {
		if got := test.price.cost(u); math.Abs(got-test.want) > 1e-15 {
			t.Errorf("%+v: %v, want %v", test.price, got, test.want)
		}
	}
}

func TestPrices_Dates(t *testing.T) {
	p := Prices{"gpt-4o": {Prompt: 1}, "gpt-4o-2024-05-13": {Prompt: 2}, "claude": {Prompt: 3}}
	for model, want := range map[string]float64{
		"gpt-4o": 1, "gpt-4o-2024-08-06": 1, "gpt-4o-2024-05-13": 2, "claude-20250929": 3, "claude-latest": 3,
		"gpt-4o-mini": 0, "gpt": 0,
	} {
		price, ok := p.of(model)
		if price.Prompt != want || ok != (want > 0) {
			t.Errorf("%s: %+v, %v", model, price, ok)
		}
	}
}
