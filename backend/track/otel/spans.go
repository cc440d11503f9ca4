package otel

import (
	"context"
	"fmt"
	"slices"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/internal/track"
)

// batch is the spans of one trace, and the scores that belong to it.
type batch struct {
	spans  []sdk.ReadOnlySpan
	scores []Score
}

// builder makes spans of what has happened already.
type builder struct {
	opts    Options
	tracer  trace.Tracer
	ended   []sdk.ReadOnlySpan
	encoder *track.Encoder // of one rollout
}

func newBuilder(o Options) *builder {
	b := &builder{opts: o, encoder: newEncoder()}
	provider := sdk.NewTracerProvider(sdk.WithSpanProcessor(b), sdk.WithSampler(sdk.AlwaysSample()),
		sdk.WithResource(resourceOf(o)), sdk.WithRawSpanLimits(unlimited))
	b.tracer = provider.Tracer("github.com/goart-dev/art")
	return b
}

// unlimited keeps long contents and many events whole.
var unlimited = sdk.SpanLimits{
	AttributeValueLengthLimit: -1, AttributeCountLimit: -1, EventCountLimit: -1, LinkCountLimit: -1,
	AttributePerEventCountLimit: -1, AttributePerLinkCountLimit: -1,
}

func resourceOf(o Options) *resource.Resource {
	var attributes []attribute.KeyValue
	for name, value := range o.Resource {
		attributes = append(attributes, attribute.String(name, value))
	}
	return resource.NewSchemaless(attributes...)
}

// OnStart implements [sdk.SpanProcessor].
func (b *builder) OnStart(context.Context, sdk.ReadWriteSpan) {}

// OnEnd implements [sdk.SpanProcessor].
func (b *builder) OnEnd(s sdk.ReadOnlySpan) { b.ended = append(b.ended, s) }

// Shutdown implements [sdk.SpanProcessor].
func (b *builder) Shutdown(context.Context) error { return nil }

// ForceFlush implements [sdk.SpanProcessor].
func (b *builder) ForceFlush(context.Context) error { return nil }

// take returns the spans that have ended.
func (b *builder) take() batch {
	spans := b.ended
	b.ended, b.encoder = nil, newEncoder()
	return batch{spans: spans}
}

// lone returns the span of a completion outside of a rollout.
func (b *builder) lone(e art.CompletionEvent) batch {
	b.chat(context.Background(), e)
	return b.take()
}

// rollout returns the spans of a rollout, and its scores.
func (b *builder) rollout(r *track.Rollout) batch {
	end := r.Finished()
	ctx, span := b.tracer.Start(context.Background(), "invoke_agent "+agentName(r),
		trace.WithTimestamp(r.Start.Time), trace.WithAttributes(b.agentAttributes(r)...))
	for i, e := range r.Completions {
		b.chat(ctx, e)
		b.tools(ctx, r, i, end)
	}
	evaluations := evaluationsOf(r)
	for _, e := range evaluations {
		span.AddEvent("gen_ai.evaluation.result", trace.WithTimestamp(end),
			trace.WithAttributes(e.attributes(b.opts.Content)...))
	}
	if failure := failureOf(r); failure != nil {
		b.fail(span, failure.Type, failure.Message)
	}
	span.End(trace.WithTimestamp(end))
	out := b.take()
	for _, e := range evaluations {
		out.scores = append(out.scores, e.score(span.SpanContext(), end, b.opts.Content))
	}
	return out
}

// fail sets the status of a span. The text is content: it may quote what was said.
func (b *builder) fail(span trace.Span, kind, text string) {
	span.SetAttributes(attribute.String("error.type", kind))
	if !b.opts.Content {
		text = ""
	}
	span.SetStatus(codes.Error, text)
}

// chat makes the span of a completion.
func (b *builder) chat(ctx context.Context, e art.CompletionEvent) {
	_, span := b.tracer.Start(ctx, "chat "+e.Model.Name(), trace.WithTimestamp(e.Time),
		trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(b.chatAttributes(e)...))
	if e.Err != nil {
		b.fail(span, fmt.Sprintf("%T", e.Err), e.Err.Error())
	}
	span.End(trace.WithTimestamp(e.Time.Add(e.Duration)))
}

// tools makes the spans of the calls in the i-th reply that were answered.
func (b *builder) tools(ctx context.Context, r *track.Rollout, i int, end time.Time) {
	e := r.Completions[i]
	if e.Response == nil {
		return
	}
	began := e.Time.Add(e.Duration)
	for _, call := range e.Response.Message.ToolCalls {
		result, at := answer(r, i, call.ID, end)
		if result == nil {
			continue
		}
		_, span := b.tracer.Start(ctx, "execute_tool "+call.Name, trace.WithTimestamp(began),
			trace.WithAttributes(b.toolAttributes(call, result)...))
		span.End(trace.WithTimestamp(at))
	}
}

// answer returns the result of a call in the i-th reply, and when it was there at the latest; nil when there is none.
func answer(r *track.Rollout, i int, id string, end time.Time) (*art.Message, time.Time) {
	for _, later := range r.Completions[i+1:] {
		if m := resultOf(later.Request.Messages, id); m != nil {
			return m, later.Time
		}
	}
	if r.End == nil || r.End.Trajectory == nil {
		return nil, end
	}
	for _, h := range r.End.Trajectory.Histories() {
		if m := resultOf(h.Messages, id); m != nil {
			return m, end
		}
	}
	return nil, end
}

// resultOf returns the newest answer to a call.
func resultOf(messages []art.Message, id string) *art.Message {
	for i := range slices.Backward(messages) {
		if m := &messages[i]; m.Role == art.RoleTool && m.ToolCallID == id {
			return m
		}
	}
	return nil
}
