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

	models map[string]*modelOptions
}

// modelOptions are the attributes of what is recorded of a model, which are sorted once: that takes longer than to
// record.
type modelOptions struct {
	chat, agent   []api.RecordOption
	sum           []api.AddOption    // chat
	input, output []api.RecordOption // chat, of either type of token
}

// of returns the attributes of a model.
func (m *metrics) of(model string) *modelOptions {
	if o := m.models[model]; o != nil {
		return o
	}
	set := func(operation, name string, more ...attribute.KeyValue) api.MeasurementOption {
		return api.WithAttributeSet(attribute.NewSet(append(more, attribute.String("gen_ai.operation.name", operation),
			attribute.String("gen_ai.provider.name", m.provider), attribute.String(name, model))...))
	}
	chat, kind := set("chat", "gen_ai.request.model"), attribute.Key("gen_ai.token.type")
	o := &modelOptions{
		chat: []api.RecordOption{chat}, sum: []api.AddOption{chat},
		agent:  []api.RecordOption{set("invoke_agent", "gen_ai.agent.name")},
		input:  []api.RecordOption{set("chat", "gen_ai.request.model", kind.String("input"))},
		output: []api.RecordOption{set("chat", "gen_ai.request.model", kind.String("output"))},
	}
	m.models[model] = o
	return o
}

// newMetrics returns nil when no metrics are wanted.
func newMetrics(o Options) (*metrics, error) {
	if o.MetricsURL == "" {
		return nil, nil
	}
	own, err := newClient("METRICS", o.Timeout)
	if err != nil {
		return nil, err
	}
	exporter, err := otlpmetrichttp.New(context.Background(), otlpmetrichttp.WithEndpointURL(o.MetricsURL),
		otlpmetrichttp.WithHeaders(o.Headers), otlpmetrichttp.WithTimeout(o.Timeout),
		otlpmetrichttp.WithHTTPClient(own))
	if err != nil {
		return nil, err
	}
	m := &metrics{provider: o.Provider, models: map[string]*modelOptions{}, meters: sdkmetric.NewMeterProvider(
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

func (m *metrics) completion(e art.CompletionEvent) {
	if m == nil {
		return
	}
	ctx, of := context.Background(), m.of(e.Model.Name())
	if e.Err != nil {
		kind := attribute.String("error.type", fmt.Sprintf("%T", e.Err))
		m.duration.Record(ctx, e.Duration.Seconds(), append(of.chat[:1:1], api.WithAttributes(kind))...)
		return
	}
	m.duration.Record(ctx, e.Duration.Seconds(), of.chat...)
	input, output := int64(e.Response.Usage.PromptTokens), int64(e.Response.Usage.CompletionTokens)
	if m.tokens != nil {
		m.tokens.Record(ctx, input, of.input...)
		m.tokens.Record(ctx, output, of.output...)
		return
	}
	m.inputs.Record(ctx, input, of.chat...)
	m.outputs.Record(ctx, output, of.chat...)
	m.inputSum.Add(ctx, input, of.sum...)
	m.outputSum.Add(ctx, output, of.sum...)
}

// rollout records the duration of a rollout that has ended.
func (m *metrics) rollout(r *track.Rollout) {
	if m == nil || m.agent == nil || r.End == nil {
		return
	}
	m.agent.Record(context.Background(), r.End.Duration.Seconds(), m.of(agentName(r)).agent...)
}
