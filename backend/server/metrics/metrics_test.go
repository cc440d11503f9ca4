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
	"github.com/goart-dev/art/internal/dev/arttest"
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

// TestMetrics_Engines: what engines do is shown at each scrape, for several backends, and takes the place of the number
// of requests over HTTP.
func TestMetrics_Engines(t *testing.T) {
	m := metrics.New()
	one := server.EngineStats{
		Base: "one", Running: 3, Waiting: 2, Blocks: 10, Used: 4, Cached: 5, Prefilled: 100, Sampled: 20, Reused: 7,
		Preempted: 1, Evicted: 6,
	}
	m.Watch(func() []server.EngineStats { return []server.EngineStats{one} })
	m.Watch(func() []server.EngineStats { return []server.EngineStats{{Base: "two", Waiting: 9}} })
	m.Begin("player")
	scrape := func() string {
		w := httptest.NewRecorder()
		m.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
		return w.Body.String()
	}
	scrape()
	one.Running, one.Sampled = 4, 21
	got := scrape()
	const of = `{model_name="one"} `
	for _, want := range []string{
		"vllm:num_requests_running" + of + "4", "vllm:num_requests_waiting" + of + "2",
		"vllm:kv_cache_usage_perc" + of + "0.4",
		"vllm:num_preemptions_total" + of + "1", "art_kv_cache_evictions_total" + of + "6",
		"art_prefilled_tokens_total" + of + "100", "art_sampled_tokens_total" + of + "21",
		"art_reused_tokens_total" + of + "7",
		`art_kv_cache_blocks{model_name="one",state="used"} 4`, `art_kv_cache_blocks{model_name="one",state="cached"} 5`,
		`art_kv_cache_blocks{model_name="one",state="free"} 1`, `vllm:num_requests_waiting{model_name="two"} 9`,
		`vllm:kv_cache_usage_perc{model_name="two"} 0`,
	} {
		if !strings.Contains(got, want+"\n") {
			t.Errorf("no %s in\n%s", want, got)
		}
	}
	if strings.Contains(got, `running{model_name="player"}`) {
		t.Error("requests count twice")
	}
}
