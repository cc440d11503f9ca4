package otel

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/resource"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	resourcepb "go.opentelemetry.io/proto/otlp/resource/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
)

// Traces that wait are sent together: up to maxTraces, in requests of some maxSpans. Further ones than maxBatches are
// dropped.
const (
	maxBatches = 1024
	maxTraces  = 128
	maxSpans   = 512
	batchDelay = time.Second
)

// resourceOf returns the attributes of the process that the options set.
func resourceOf(o Options) *resource.Resource {
	var attributes []attribute.KeyValue
	for name, value := range o.Resource {
		attributes = append(attributes, attribute.String(name, value))
	}
	return resource.NewSchemaless(attributes...)
}

// traceResource returns them as a message, with those of OTEL_RESOURCE_ATTRIBUTES that the options do not set.
func traceResource(o Options) *resourcepb.Resource {
	all, err := resource.Merge(resource.Environment(), resourceOf(o))
	if err != nil { // of schemas, which ours has none of
		all = resourceOf(o)
	}
	out := &resourcepb.Resource{}
	for _, a := range all.Attributes() {
		out.Attributes = append(out.Attributes, &commonpb.KeyValue{Key: string(a.Key), Value: &commonpb.AnyValue{
			Value: &commonpb.AnyValue_StringValue{StringValue: a.Value.String()},
		}})
	}
	return out
}

// send exports traces, in as few requests as may be.
func (t *Tracker) send(ctx context.Context, traces []batch) (lost int, err error) {
	for len(traces) > 0 {
		var parts [][]byte
		n, count := 0, 0
		for n < len(traces) && count < maxSpans {
			parts, count = append(parts, traces[n].spans), count+traces[n].count
			n++
		}
		spans := slices.Concat(parts...)
		failed, problem := t.export(ctx, spans, traces[:n])
		if problem != nil {
			lost, err = lost+failed, problem
		}
		traces = traces[n:]
	}
	return lost, err
}

// export sends the spans of traces, and then their scores.
func (t *Tracker) export(ctx context.Context, spans []byte, traces []batch) (lost int, err error) {
	scope := &tracepb.ScopeSpans{Scope: &commonpb.InstrumentationScope{Name: "github.com/goart-dev/art"}}
	scope.ProtoReflect().SetUnknown(spans) // what is written already goes through as it is
	request := &tracepb.ResourceSpans{Resource: t.resource, ScopeSpans: []*tracepb.ScopeSpans{scope}}
	if err := t.client.UploadTraces(ctx, []*tracepb.ResourceSpans{request}); err != nil {
		return len(traces), fmt.Errorf("traces were not sent: %w", err)
	}
	if t.opts.Scores == nil {
		return 0, nil
	}
	for _, trace := range traces {
		for _, s := range trace.scores {
			ctx, cancel := context.WithTimeout(ctx, t.opts.Timeout)
			problem := t.opts.Scores.send(ctx, s)
			cancel()
			if problem != nil {
				lost, err = lost+1, fmt.Errorf("a score was not sent: %w", problem)
			}
		}
	}
	return lost, err
}

// finish sends what was counted.
func (t *Tracker) finish(ctx context.Context) error {
	err := t.metrics.close(ctx)
	if problem := t.client.Stop(ctx); problem != nil {
		err = errors.Join(err, fmt.Errorf("otel: %w", problem))
	}
	return err
}
