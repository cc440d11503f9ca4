// Package metrics counts what a server does, for Prometheus. It is a package of its own so that a program that only
// calls a backend in process does without the library.
//
//	m := metrics.New()
//	handler, err := server.Handler(models, &server.Config{Metrics: m}, opts)
//
// GET /metrics then has, by the label model_name, what vLLM calls:
//
//   - vllm:num_requests_running: requests that are being answered;
//   - vllm:prompt_tokens_total, vllm:generation_tokens_total;
//   - vllm:prefix_cache_queries_total and vllm:prefix_cache_hits_total: tokens of prompts, and those of them that were
//     found in the KV cache;
//   - vllm:request_success_total, also by finished_reason;
//   - vllm:request_prompt_tokens and vllm:request_generation_tokens: histograms of tokens;
//   - vllm:time_to_first_token_seconds and vllm:inter_token_latency_seconds: histograms, of streams only;
//   - vllm:e2e_request_latency_seconds: a histogram.
//
// art_request_failures_total counts requests without a reply.
//
// A backend with engines, such as backend/local, lets [Metrics.Watch] show them. model_name is the base model then, and
// requests of this process count too:
//
//   - vllm:num_requests_running and vllm:num_requests_waiting: requests that have a slot and those that wait for one,
//     in place of the number above;
//   - vllm:kv_cache_usage_perc: the fraction of the blocks of the KV cache that requests use, from 0 to 1;
//   - vllm:num_preemptions_total: requests that gave their blocks away and waited again;
//   - art_kv_cache_blocks, by state: used by requests that run, cached for later ones, free;
//   - art_kv_cache_evictions_total: cached blocks that were given away;
//   - art_prefilled_tokens_total, art_sampled_tokens_total and art_reused_tokens_total: tokens that were computed of
//     prompts, sampled, and found in the cache.
//
// Beside these there are Prometheus' own metrics of the Go runtime and of the process.
package metrics

import (
	"net/http"
	"sync"
	"time"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/server"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Metrics is a [server.Metrics].
type Metrics struct {
	registry *prometheus.Registry
	http.Handler
	vectors
	engines *engines
}

// vectors are the metrics, by the name of the model.
type vectors struct {
	running                        *prometheus.GaugeVec
	prompt, generated, found       *prometheus.CounterVec
	asked, succeeded, failed       *prometheus.CounterVec
	promptSize, replySize          *prometheus.HistogramVec
	firstToken, nextToken, latency *prometheus.HistogramVec
}

var _ server.EngineMetrics = (*Metrics)(nil)

// New returns metrics with a registry of their own, in which nothing has been counted.
func New() *Metrics {
	m := &Metrics{registry: prometheus.NewRegistry(), vectors: newVectors()}
	m.engines = &engines{requests: m.running}
	m.registry.MustRegister(
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		m.engines, m.prompt, m.generated, m.found, m.asked, m.succeeded, m.failed, m.promptSize, m.replySize, m.firstToken,
		m.nextToken, m.latency)
	m.Handler = promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{})
	return m
}

// Registry returns the registry, for further metrics of the program.
func (m *Metrics) Registry() *prometheus.Registry { return m.registry }

const label = "model_name"

func newVectors() vectors {
	seconds := []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300}
	tokens := prometheus.ExponentialBuckets(1, 2, 18) // up to 131,072
	return vectors{
		running: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: runningName, Help: runningHelp,
		}, []string{label}),
		prompt:    counter("vllm:prompt_tokens_total", "Tokens of prompts."),
		generated: counter("vllm:generation_tokens_total", "Sampled tokens."),
		asked:     counter("vllm:prefix_cache_queries_total", "Tokens of prompts that were looked up in the KV cache."),
		found:     counter("vllm:prefix_cache_hits_total", "Tokens of prompts that were found in the KV cache."),
		succeeded: counter("vllm:request_success_total", "Requests that got a reply.", "finished_reason"),
		failed:    counter("art_request_failures_total", "Requests that got no reply."),

		promptSize: histogram("vllm:request_prompt_tokens", "Tokens of a prompt.", tokens),
		replySize:  histogram("vllm:request_generation_tokens", "Sampled tokens of a reply.", tokens),
		firstToken: histogram("vllm:time_to_first_token_seconds", "Time to the first token of a stream.", seconds),
		nextToken:  histogram("vllm:inter_token_latency_seconds", "Time between tokens of a stream.", seconds),
		latency:    histogram("vllm:e2e_request_latency_seconds", "Time to answer a request.", seconds),
	}
}

func counter(name, help string, labels ...string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, append([]string{label}, labels...))
}

func histogram(name, help string, buckets []float64) *prometheus.HistogramVec {
	return prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, []string{label})
}

// Begin implements [server.Metrics].
func (m *Metrics) Begin(model string) server.Observation {
	m.running.WithLabelValues(model).Inc()
	return &observation{metrics: m, model: model, began: time.Now()}
}

// observation is one request.
type observation struct {
	metrics *Metrics
	model   string
	began   time.Time
	last    time.Time // when the last tokens came
}

// Piece implements [server.Observation]. The time since the piece before is shared by the tokens of a piece.
func (o *observation) Piece(tokens int) {
	if tokens == 0 {
		return
	}
	now := time.Now()
	if o.last.IsZero() {
		o.metrics.firstToken.WithLabelValues(o.model).Observe(now.Sub(o.began).Seconds())
	} else {
		each := now.Sub(o.last).Seconds() / float64(tokens)
		for range tokens {
			o.metrics.nextToken.WithLabelValues(o.model).Observe(each)
		}
	}
	o.last = now
}

func (o *observation) End(reply *art.ChatResponse, err error) {
	m := o.metrics
	m.running.WithLabelValues(o.model).Dec()
	if err != nil {
		m.failed.WithLabelValues(o.model).Inc()
		return
	}
	u := reply.Usage
	m.prompt.WithLabelValues(o.model).Add(float64(u.PromptTokens))
	m.asked.WithLabelValues(o.model).Add(float64(u.PromptTokens))
	m.found.WithLabelValues(o.model).Add(float64(u.CachedTokens))
	m.generated.WithLabelValues(o.model).Add(float64(u.CompletionTokens))
	m.succeeded.WithLabelValues(o.model, reply.Finish).Inc()
	m.promptSize.WithLabelValues(o.model).Observe(float64(u.PromptTokens))
	m.replySize.WithLabelValues(o.model).Observe(float64(u.CompletionTokens))
	m.latency.WithLabelValues(o.model).Observe(time.Since(o.began).Seconds())
}

const (
	runningName = "vllm:num_requests_running"
	runningHelp = "Requests that are being answered."
)

// engines collects what engines do, or the requests over HTTP if there are none.
type engines struct {
	requests *prometheus.GaugeVec

	mu      sync.Mutex
	sources []func() []server.EngineStats
}

// Watch implements [server.EngineMetrics].
func (m *Metrics) Watch(source func() []server.EngineStats) {
	m.engines.mu.Lock()
	defer m.engines.mu.Unlock()
	m.engines.sources = append(m.engines.sources, source)
}

// engineMetric is a number of an engine.
type engineMetric struct {
	desc  *prometheus.Desc
	kind  prometheus.ValueType
	value func(s *server.EngineStats) float64
}

// gauge describes a number that rises and falls.
func gauge(name, help string, value func(*server.EngineStats) float64) engineMetric {
	return engineMetric{prometheus.NewDesc(name, help, []string{label}, nil), prometheus.GaugeValue, value}
}

// total describes a number that rises.
func total(name, help string, value func(*server.EngineStats) int) engineMetric {
	return engineMetric{prometheus.NewDesc(name, help, []string{label}, nil), prometheus.CounterValue,
		func(s *server.EngineStats) float64 { return float64(value(s)) }}
}

// engineMetrics are the numbers of an engine but for its blocks.
var engineMetrics = []engineMetric{
	gauge(runningName, runningHelp, func(s *server.EngineStats) float64 { return float64(s.Running) }),
	gauge("vllm:num_requests_waiting", "Requests that wait for a slot or for blocks of the KV cache.",
		func(s *server.EngineStats) float64 { return float64(s.Waiting) }),
	gauge("vllm:kv_cache_usage_perc", "Fraction of the blocks of the KV cache that requests use; 1 is all of them.",
		func(s *server.EngineStats) float64 { return float64(s.Used) / float64(max(s.Blocks, 1)) }),
	total("vllm:num_preemptions_total", "Requests that gave their blocks away and waited again.",
		func(s *server.EngineStats) int { return s.Preempted }),
	total("art_kv_cache_evictions_total", "Cached blocks that were given away.",
		func(s *server.EngineStats) int { return s.Evicted }),
	total("art_prefilled_tokens_total", "Computed tokens of prompts, and of replies that had lost their blocks.",
		func(s *server.EngineStats) int { return s.Prefilled }),
	total("art_sampled_tokens_total", "Tokens of replies.", func(s *server.EngineStats) int { return s.Sampled }),
	total("art_reused_tokens_total", "Tokens of prompts that were found in the KV cache.",
		func(s *server.EngineStats) int { return s.Reused }),
}

// blocksDesc describes the blocks of an engine.
var blocksDesc = prometheus.NewDesc("art_kv_cache_blocks",
	"Blocks of the KV cache: used by requests that run, cached for later ones, or free.", []string{label, "state"}, nil)

func (e *engines) Describe(out chan<- *prometheus.Desc) {
	for _, m := range engineMetrics {
		out <- m.desc
	}
	out <- blocksDesc
}

func (e *engines) Collect(out chan<- prometheus.Metric) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.sources) == 0 {
		e.requests.Collect(out)
	}
	for _, source := range e.sources {
		for _, s := range source() {
			for _, m := range engineMetrics {
				out <- prometheus.MustNewConstMetric(m.desc, m.kind, m.value(&s), s.Base)
			}
			for state, n := range map[string]int{"used": s.Used, "cached": s.Cached, "free": s.Blocks - s.Used - s.Cached} {
				out <- prometheus.MustNewConstMetric(blocksDesc, prometheus.GaugeValue, float64(n), s.Base, state)
			}
		}
	}
}
