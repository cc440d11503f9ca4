// Package otel exports what agents do as traces of OpenTelemetry, by its conventions for generative AI: a rollout is a
// span invoke_agent, each completion of the model a span chat, each call of a tool a span execute_tool, and the reward
// and the score of a judge are evaluation events. Any collector that speaks OTLP over HTTP takes them; presets make
// the options for Weave, Langfuse and MLflow, and send the scores to the former two as they want them.
//
//	spans, err := otel.New(otel.Langfuse("https://cloud.langfuse.com", publicKey, secretKey))
//	defer spans.Close()
//	model := art.NewModel("player", &art.ModelOptions{Events: spans.Events()})
//	groups, err := art.GatherGroups(ctx, scenarios, play, &art.GatherOptions{Events: spans.Events()})
//
// The model's events tell of completions and the gather's of rollouts; both are needed for whole traces. A rollout is
// exported when its group is complete and judged. Spans leave out what was said, unless [Options].Content is set.
//
// A span of a tool lasts from the reply that calls it to the next request of the rollout, in which its result is: what
// the agent did in between is not known more exactly.
package otel

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	sdk "go.opentelemetry.io/otel/sdk/trace"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/internal/track"
)

// Options of [New]. The zero value sends to where the environment says, see [Options].URL.
type Options struct {
	// URL receives the traces: a full one, such as "http://localhost:4318/v1/traces". Default: OTEL_EXPORTER_OTLP_ENDPOINT
	// and the other variables of OpenTelemetry, and without them http://localhost:4318/v1/traces.
	URL string
	// MetricsURL receives metrics: durations and numbers of tokens. Empty sends none.
	MetricsURL string
	// Headers of each request, such as keys.
	Headers map[string]string
	// Resource are attributes of the process. "service.name" defaults to "art".
	Resource map[string]string
	// Provider is gen_ai.provider.name. Default "art": the model runs in this process.
	Provider string
	// Content puts what was said into spans: messages, tools with arguments and results, explanations of judges, texts of
	// errors, and metadata of trajectories.
	Content bool
	// LatestMetrics uses the names of metrics of 2026 (gen_ai.client.inference.usage.input_tokens, ...) instead of those
	// of semantic conventions 1.41 (gen_ai.client.token.usage). nil is true where OTEL_SEMCONV_STABILITY_OPT_IN has
	// gen_ai_latest_experimental.
	LatestMetrics *bool
	// Scores receives the rewards of rollouts besides. nil sends none.
	Scores Scorer
	// Timeout bounds a request, and [Tracker.Close]. Default 10 s.
	Timeout time.Duration
	// Logger is told of failures and of what is dropped. nil is silent.
	Logger *slog.Logger
}

// Tracker exports traces. See the documentation of the package.
type Tracker struct {
	opts     Options
	events   *track.Queue[any] // of callbacks
	batches  *track.Queue[batch]
	exporter sdk.SpanExporter
	metrics  *metrics // nil for none
	ctx      context.Context
	cancel   context.CancelFunc
	done     chan struct{}
	collect  *collector
	closing  sync.Once
	err      error // of the last batch that failed, and then of Close
}

// How many events and batches of spans may wait.
const (
	maxEvents  = 4096
	maxBatches = 256
)

// New starts a tracker. opts may be nil. An error says what is wrong with opts; that nobody listens is none.
func New(opts *Options) (*Tracker, error) {
	var o Options
	if opts != nil {
		o = *opts
	}
	o.setDefaults()
	clients := []otlptracehttp.Option{otlptracehttp.WithTimeout(o.Timeout)}
	if o.URL != "" {
		if !strings.HasPrefix(o.URL, "http://") && !strings.HasPrefix(o.URL, "https://") {
			return nil, fmt.Errorf("otel: Options.URL is %q: write it like http://localhost:4318/v1/traces", o.URL)
		}
		clients = append(clients, otlptracehttp.WithEndpointURL(o.URL))
	}
	if len(o.Headers) > 0 {
		clients = append(clients, otlptracehttp.WithHeaders(o.Headers))
	}
	ctx, cancel := context.WithCancel(context.Background())
	exporter, err := otlptracehttp.New(ctx, clients...)
	if err != nil {
		cancel()
		return nil, fmt.Errorf("otel: %w", err)
	}
	t := &Tracker{
		opts: o, events: track.NewQueue[any](maxEvents), batches: track.NewQueue[batch](maxBatches),
		exporter: exporter, ctx: ctx, cancel: cancel, done: make(chan struct{}),
	}
	if t.metrics, err = newMetrics(ctx, o); err != nil {
		cancel()
		return nil, fmt.Errorf("otel: %w", err)
	}
	t.collect = newCollector(t)
	sent := make(chan struct{})
	go func() { defer close(sent); t.send() }()
	go func() { defer close(t.done); t.work(); <-sent }()
	return t, nil
}

func (o *Options) setDefaults() {
	o.Provider = cmp.Or(o.Provider, "art")
	o.Timeout = cmp.Or(o.Timeout, 10*time.Second)
	o.Headers = maps.Clone(o.Headers)
	o.Resource = maps.Clone(o.Resource)
	if o.Resource == nil {
		o.Resource = map[string]string{}
	}
	if o.Resource["service.name"] == "" {
		o.Resource["service.name"] = cmp.Or(os.Getenv("OTEL_SERVICE_NAME"), "art")
	}
	if o.LatestMetrics == nil {
		names := strings.Split(os.Getenv("OTEL_SEMCONV_STABILITY_OPT_IN"), ",")
		o.LatestMetrics = new(slices.Contains(names, "gen_ai_latest_experimental"))
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
}

// Events returns the callbacks of the tracker, for [art.ModelOptions] and [art.GatherOptions].
func (t *Tracker) Events() *art.Events {
	return track.RolloutEvents(t.tell)
}

// tell queues an event.
func (t *Tracker) tell(e any) {
	if !t.events.Send(e) && t.events.Lost() == 1 {
		t.opts.Logger.Warn("traces are too slow: events are dropped")
	}
}

// Dropped returns how many events, and how many batches of spans, were lost: because too many waited, or because the
// receiver did not take them.
func (t *Tracker) Dropped() int { return t.events.Lost() + t.batches.Lost() }

// Close exports what waits, for [Options].Timeout at most. The error says what was lost. A second call returns the
// same.
func (t *Tracker) Close() error {
	t.closing.Do(func() {
		timer := time.AfterFunc(t.opts.Timeout, t.cancel)
		defer timer.Stop()
		t.events.Close()
		<-t.done
		t.err = errors.Join(t.err, t.metrics.close(t.ctx))
		t.cancel()
		if n := t.Dropped(); n > 0 {
			t.opts.Logger.Warn("traces are incomplete", "dropped", n)
			t.err = errors.Join(t.err, fmt.Errorf("otel: %d events or batches of spans were lost", n))
		}
	})
	return t.err
}

// work turns events to spans until Close.
func (t *Tracker) work() {
	defer t.batches.Close()
	for {
		select {
		case e := <-t.events.Items():
			t.collect.take(e)
		case <-t.events.Closed():
			for range len(t.events.Items()) {
				t.collect.take(<-t.events.Items())
			}
			t.collect.rollouts.Finish()
			return
		}
	}
}
