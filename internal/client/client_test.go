package client

import (
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/goart-dev/art"
)

// TestAddress: an address has a scheme of the web and a host.
func TestAddress(t *testing.T) {
	for text, want := range map[string]string{
		"https://host/path/": "https://host/path", "http://[::1]:8080": "http://[::1]:8080",
		"": "", "host/path": "", "ftp://host": "", "http://": "", "http://a b": "",
		"https://user:pass@host": "", "https://host/?key=abc": "", "https://host/#abc": "",
	} {
		u, err := Address(text)
		if want == "" {
			if !errors.Is(err, art.ErrInvalid) {
				t.Errorf("%q: error %v", text, err)
			}
		} else if err != nil || u.String() != want {
			t.Errorf("%q: %v, error %v, want %q", text, u, err, want)
		}
	}
}

// TestWait: the service is obeyed within a minute, and waits grow otherwise, up to a limit.
func TestWait(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"2": 2 * time.Second, "0.5": time.Second / 2, "60": time.Minute, "61": 0, "0": 0, "-1": 0, "NaN": 0, "": 0, "soon": 0,
	} {
		if got := RetryAfter(http.Header{"Retry-After": {text}}); got != want {
			t.Errorf("Retry-After %q: %v, want %v", text, got, want)
		}
	}
	if got := Wait(3, time.Minute); got != time.Minute {
		t.Errorf("the wait is %v, the service asks for a minute", got)
	}
	for failures, longest := range []time.Duration{0: time.Second / 2, 1: time.Second, 4: 8 * time.Second,
		5: 10 * time.Second, 99: 10 * time.Second} {
		if got := Wait(failures, 0); longest > 0 && (got > longest || got < longest*3/4) {
			t.Errorf("the wait after %d failures is %v, want at most %v and a quarter less", failures, got, longest)
		}
	}
}

// TestPlain: each thing beyond rank and alpha is one too many.
func TestPlain(t *testing.T) {
	if !Plain(art.LoRA{Rank: 4, Alpha: 8}) {
		t.Error("rank and alpha are not plain")
	}
	for _, l := range []art.LoRA{
		{Targets: []string{"q_proj"}}, {TargetPattern: "q"}, {RankStabilized: true}, {DoRA: true},
		{Ranks: map[string]int{"q_proj": 2}}, {Alphas: map[string]float64{"q_proj": 2}},
	} {
		if Plain(l) {
			t.Errorf("%+v is plain", l)
		}
	}
}
