package metrics_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/server"
	"github.com/goart-dev/art/backend/server/metrics"
	"github.com/goart-dev/art/internal/arttest"
	"github.com/goart-dev/art/internal/wire/wiretest"
)

// TestMetrics_Count checks what a reply, a streamed reply and a failure add, and that /metrics shows it.
func TestMetrics_Count(t *testing.T) {
	fail := false
	fake := &arttest.Backend{Reply: func(context.Context, *art.Model, *art.ChatRequest) (art.Message, error) {
		if fail {
			return art.Message{}, errors.New("no device")
		}
		return art.Assistant("Hello"), nil
	}}
	m := art.NewModel("player", nil)
	if err := m.Register(t.Context(), fake); err != nil {
		t.Fatal(err)
	}
	h := server.Routes(func() []*art.Model { return []*art.Model{m} }, &server.Config{Metrics: metrics.New()})
	send := func(method, path, body string) string {
		r := httptest.NewRequest(method, path, strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w.Body.String()
	}
	const path = "/v1/chat/completions"
	send(http.MethodPost, path, wiretest.Hello(``))
	send(http.MethodPost, path, wiretest.Hello(`, "stream": true, "max_tokens": 3`))
	fail = true
	send(http.MethodPost, path, wiretest.Hello(``))
	got := send(http.MethodGet, "/metrics", "")
	const of = `{model_name="player"} `
	for _, want := range []string{
		"vllm:num_requests_running" + of + "0", "vllm:prompt_tokens_total" + of + "22", // twice "user:Hello\n"
		"vllm:generation_tokens_total" + of + "8", "vllm:prefix_cache_queries_total" + of + "22",
		"vllm:prefix_cache_hits_total" + of + "0", "art_request_failures_total" + of + "1",
		`vllm:request_success_total{finished_reason="stop",model_name="player"} 1`,
		`vllm:request_success_total{finished_reason="length",model_name="player"} 1`,
		"vllm:request_generation_tokens_sum" + of + "8", "vllm:request_prompt_tokens_count" + of + "2",
		"vllm:time_to_first_token_seconds_count" + of + "1", "vllm:inter_token_latency_seconds_count" + of + "2",
		"vllm:e2e_request_latency_seconds_count" + of + "2", "go_goroutines ",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %s in\n%s", want, got)
		}
	}
}

// TestMetrics_Choices: each of several replies to one request counts, streamed or not.
func TestMetrics_Choices(t *testing.T) {
	m := art.NewModel("player", nil)
	if err := m.Register(t.Context(), &arttest.Backend{}); err != nil {
		t.Fatal(err)
	}
	h := server.Routes(func() []*art.Model { return []*art.Model{m} }, &server.Config{Metrics: metrics.New()})
	send := func(method, path, body string) string {
		r := httptest.NewRequest(method, path, strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w.Body.String()
	}
	for _, fields := range []string{`, "n": 3`, `, "n": 3, "stream": true`} {
		send(http.MethodPost, "/v1/chat/completions", wiretest.Hello(fields))
	}
	got := send(http.MethodGet, "/metrics", "")
	for _, want := range []string{
		`vllm:num_requests_running{model_name="player"} 0`,
		`vllm:request_success_total{finished_reason="stop",model_name="player"} 6`,
		`vllm:time_to_first_token_seconds_count{model_name="player"} 3`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %s in\n%s", want, got)
		}
	}
}
