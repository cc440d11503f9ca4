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
	"encoding/base64"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	resourcepb "go.opentelemetry.io/proto/otlp/resource/v1"

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
	client   otlptrace.Client
	resource *resourcepb.Resource
	metrics  *metrics // nil for none
	spans    *builder
	out      *track.Exporter[batch]
}

// New starts a tracker. opts may be nil. An error says what is wrong with opts; that nobody listens is none.
func New(opts *Options) (*Tracker, error) {
	var o Options
	if opts != nil {
		o = *opts
	}
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
	own, err := newClient("TRACES", o.Timeout)
	if err != nil {
		return nil, fmt.Errorf("otel: %w", err)
	}
	clients := []otlptracehttp.Option{otlptracehttp.WithTimeout(o.Timeout), otlptracehttp.WithHTTPClient(own)}
	if o.URL != "" {
		if !strings.HasPrefix(o.URL, "http://") && !strings.HasPrefix(o.URL, "https://") {
			return nil, fmt.Errorf("otel: Options.URL is %q: write it like http://localhost:4318/v1/traces", o.URL)
		}
		clients = append(clients, otlptracehttp.WithEndpointURL(o.URL))
	}
	if len(o.Headers) > 0 {
		clients = append(clients, otlptracehttp.WithHeaders(o.Headers))
	}
	client := otlptracehttp.NewClient(clients...)
	if err := client.Start(context.Background()); err != nil {
		return nil, fmt.Errorf("otel: %w", err)
	}
	t := &Tracker{opts: o, client: client, resource: traceResource(o), spans: &builder{opts: o}}
	if t.metrics, err = newMetrics(o); err != nil {
		return nil, fmt.Errorf("otel: %w", err)
	}
	t.out = track.NewExporter(track.ExporterOptions[batch]{
		Name: "otel", Items: "batches of spans", Waiting: maxBatches, Batch: maxTraces, BatchDelay: batchDelay,
		Timeout: o.Timeout, Logger: o.Logger, Completion: t.metrics.completion,
		Rollout: func(r *track.Rollout) ([]batch, int, error) {
			t.metrics.rollout(r)
			return []batch{t.spans.rollout(r)}, 0, nil
		},
		Lone: func(e art.CompletionEvent) ([]batch, int, error) { return []batch{t.spans.lone(e)}, 0, nil },
		Send: t.send, Finish: t.finish,
	})
	return t, nil
}

// Events returns the callbacks of the tracker, for [art.ModelOptions] and [art.GatherOptions].
func (t *Tracker) Events() *art.Events { return t.out.Events() }

// Dropped returns how many events, and how many batches of spans, were lost: because too many waited, or because the
// receiver did not take them.
func (t *Tracker) Dropped() int { return t.out.Dropped() }

// Close exports what waits, for [Options].Timeout at most. The error says what was lost. A second call returns the
// same.
func (t *Tracker) Close() error { return t.out.Close() }

// score is an evaluation of a trace, for services that do not read evaluation events.
type score struct {
	Trace, Span string // in hexadecimal
	Name        string
	Value       float64
	Explanation string // empty unless [Options].Content is set
	Time        time.Time
}

// Scorer sends scores to a service. [Weave] and [Langfuse] have one.
type Scorer interface {
	send(ctx context.Context, s score) error
}

// Langfuse returns options for Langfuse at a host, such as "https://cloud.langfuse.com": traces, and scores of them.
func Langfuse(host, publicKey, secretKey string) *Options {
	host = strings.TrimRight(host, "/")
	headers := map[string]string{
		"Authorization":                basic(publicKey, secretKey),
		"x-langfuse-ingestion-version": "4",
	}
	return &Options{
		URL: host + "/api/public/otel/v1/traces", Headers: headers,
		Scores: &langfuse{host + "/api/public/scores", headers},
	}
}

// Weave returns options for W&B Weave: traces, and feedback on them. host is empty for "https://trace.wandb.ai", or
// that of a trace server of one's own. Feedback is sent to the call with the id of the span; that Weave gives its calls
// these ids is documented nowhere, and was not checked against the service.
func Weave(host, entity, project, apiKey string) *Options {
	if host == "" {
		host = "https://trace.wandb.ai"
	}
	host = strings.TrimRight(host, "/")
	headers := map[string]string{"Authorization": basic("api", apiKey), "project_id": entity + "/" + project}
	return &Options{
		URL: host + "/otel/v1/traces", Headers: headers,
		Resource: map[string]string{"wandb.entity": entity, "wandb.project": project},
		Scores:   &weave{host + "/feedback/create", entity + "/" + project, headers},
	}
}

// MLflow returns options for the traces of an MLflow server, in the experiment of the given id.
func MLflow(host, experimentID string) *Options {
	return &Options{
		URL: strings.TrimRight(host, "/") + "/v1/traces", Headers: map[string]string{"x-mlflow-experiment-id": experimentID},
	}
}

func basic(user, password string) string {
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+password))
}

// langfuse sends scores to Langfuse. The id makes a repeated one replace the first.
type langfuse struct {
	url     string
	headers map[string]string
}

func (l *langfuse) send(ctx context.Context, s score) error {
	body := map[string]any{
		"id": s.Trace + "-" + s.Name, "traceId": s.Trace, "observationId": s.Span, "name": s.Name, "value": s.Value,
		"dataType": "NUMERIC", "timestamp": s.Time.UTC().Format(time.RFC3339Nano),
	}
	if s.Explanation != "" {
		body["comment"] = s.Explanation
	}
	return track.PostJSON(ctx, l.url, l.headers, body)
}

// weave sends scores as feedback on calls.
type weave struct {
	url, project string
	headers      map[string]string
}

func (w *weave) send(ctx context.Context, s score) error {
	payload := map[string]any{"value": s.Value}
	if s.Explanation != "" {
		payload["explanation"] = s.Explanation
	}
	return track.PostJSON(ctx, w.url, w.headers, map[string]any{
		"project_id": w.project, "weave_ref": "weave:///" + w.project + "/call/" + s.Span,
		"feedback_type": s.Name, "payload": payload,
	})
}
