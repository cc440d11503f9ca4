package otel

import (
	"context"
	"fmt"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	api "go.opentelemetry.io/otel/metric"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/internal/track"
)

// metrics counts durations and tokens. The methods of a nil *metrics do nothing.
type metrics struct {
	provider string
	meters   *sdkmetric.MeterProvider

	duration, agent api.Float64Histogram
	tokens          api.Int64Histogram // 1.41: input and output
	inputs, outputs api.Int64Histogram // latest
	inputSum        api.Int64Counter   // latest
	outputSum       api.Int64Counter   // latest
}

// newMetrics returns nil when no metrics are wanted.
func newMetrics(ctx context.Context, o Options) (*metrics, error) {
	if o.MetricsURL == "" {
		return nil, nil
	}
	exporter, err := otlpmetrichttp.New(ctx, otlpmetrichttp.WithEndpointURL(o.MetricsURL),
		otlpmetrichttp.WithHeaders(o.Headers), otlpmetrichttp.WithTimeout(o.Timeout))
	if err != nil {
		return nil, err
	}
	m := &metrics{provider: o.Provider, meters: sdkmetric.NewMeterProvider(
		sdkmetric.WithReader(sdkmetric.NewPeriodicReader(exporter)), sdkmetric.WithResource(resourceOf(o)))}
	return m, m.instruments(*o.LatestMetrics)
}

// powers returns n bounds from first, each factor times the one before.
func powers(first, factor float64, n int) []float64 {
	out := make([]float64, n)
	for i := range out {
		out[i] = first
		first *= factor
	}
	return out
}

// instruments makes the instruments of one spelling.
func (m *metrics) instruments(latest bool) error {
	meter := m.meters.Meter("github.com/goart-dev/art")
	var first error
	keep := func(err error) {
		if first == nil {
			first = err
		}
	}
	seconds := func(name string) api.Float64Histogram {
		h, err := meter.Float64Histogram(name, api.WithUnit("s"),
			api.WithExplicitBucketBoundaries(powers(0.01, 2, 14)...))
		keep(err)
		return h
	}
	tokens := func(name string) api.Int64Histogram {
		h, err := meter.Int64Histogram(name, api.WithUnit("{token}"),
			api.WithExplicitBucketBoundaries(powers(1, 4, 14)...))
		keep(err)
		return h
	}
	count := func(name string) api.Int64Counter {
		c, err := meter.Int64Counter(name, api.WithUnit("{token}"))
		keep(err)
		return c
	}
	m.duration = seconds("gen_ai.client.operation.duration")
	if !latest {
		m.tokens = tokens("gen_ai.client.token.usage")
		return first
	}
	m.agent = seconds("gen_ai.invoke_agent.duration")
	m.inputs = tokens("gen_ai.client.inference.operation.input_tokens")
	m.outputs = tokens("gen_ai.client.inference.operation.output_tokens")
	m.inputSum = count("gen_ai.client.inference.usage.input_tokens")
	m.outputSum = count("gen_ai.client.inference.usage.output_tokens")
	return first
}

// completion records a completion.
func (m *metrics) completion(e art.CompletionEvent) {
	if m == nil {
		return
	}
	ctx := context.Background()
	names := []attribute.KeyValue{
		attribute.String("gen_ai.operation.name", "chat"), attribute.String("gen_ai.provider.name", m.provider),
		attribute.String("gen_ai.request.model", e.Model.Name()),
	}
	if e.Err != nil {
		failed := append(names, attribute.String("error.type", fmt.Sprintf("%T", e.Err)))
		m.duration.Record(ctx, e.Duration.Seconds(), api.WithAttributes(failed...))
		return
	}
	with := api.WithAttributes(names...)
	m.duration.Record(ctx, e.Duration.Seconds(), with)
	input, output := int64(e.Response.Usage.PromptTokens), int64(e.Response.Usage.CompletionTokens)
	if m.tokens != nil {
		kind := attribute.Key("gen_ai.token.type")
		m.tokens.Record(ctx, input, with, api.WithAttributes(kind.String("input")))
		m.tokens.Record(ctx, output, with, api.WithAttributes(kind.String("output")))
		return
	}
	m.inputs.Record(ctx, input, with)
	m.outputs.Record(ctx, output, with)
	m.inputSum.Add(ctx, input, with)
	m.outputSum.Add(ctx, output, with)
}

// rollout records the duration of a rollout that has ended.
func (m *metrics) rollout(r *track.Rollout) {
	if m == nil || m.agent == nil || r.End == nil {
		return
	}
	m.agent.Record(context.Background(), r.End.Duration.Seconds(), api.WithAttributes(
		attribute.String("gen_ai.operation.name", "invoke_agent"), attribute.String("gen_ai.provider.name", m.provider),
		attribute.String("gen_ai.agent.name", agentName(r))))
}

// close sends what was counted.
func (m *metrics) close(ctx context.Context) error {
	if m == nil {
		return nil
	}
	if err := m.meters.Shutdown(ctx); err != nil {
		return fmt.Errorf("otel: metrics: %w", err)
	}
	return nil
}
