package metrics

import (
	"sync"

	"github.com/goart-dev/art/backend/server"
	"github.com/prometheus/client_golang/prometheus"
)

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

// Describe implements [prometheus.Collector].
func (e *engines) Describe(out chan<- *prometheus.Desc) {
	for _, m := range engineMetrics {
		out <- m.desc
	}
	out <- blocksDesc
}

// Collect implements [prometheus.Collector].
func (e *engines) Collect(out chan<- prometheus.Metric) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.sources) == 0 {
		e.requests.Collect(out)
	}
	for _, source := range e.sources {
		for _, s := range source() {
			collectEngine(out, &s)
		}
	}
}

// collectEngine collects the numbers of one engine.
func collectEngine(out chan<- prometheus.Metric, s *server.EngineStats) {
	for _, m := range engineMetrics {
		out <- prometheus.MustNewConstMetric(m.desc, m.kind, m.value(s), s.Base)
	}
	for state, n := range map[string]int{"used": s.Used, "cached": s.Cached, "free": s.Blocks - s.Used - s.Cached} {
		out <- prometheus.MustNewConstMetric(blocksDesc, prometheus.GaugeValue, float64(n), s.Base, state)
	}
}
