package otel

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// TestAppendSpan: what is written is the message that protobuf's own code writes and reads, whatever the lengths.
func TestAppendSpan(t *testing.T) {
	start := time.Unix(1_700_000_000, 123)
	for _, length := range []int{0, 1, 100, 127, 128, 16_383, 16_384, 3_000_000} {
		text := strings.Repeat("x", length)
		id := newTrace()
		s := span{
			identity: id.child(), parent: id.span[:], name: "chat " + text, kind: kindClient, start: start,
			end: start.Add(time.Second), failed: true, message: text,
			attributes: []attribute.KeyValue{
				attribute.String("text", text), attribute.Int("number", -length), attribute.Float64("real", 0.5),
				attribute.StringSlice("list", []string{text, "", "y"}), attribute.Bool("flag", true),
			},
			events: []event{{"scored", start, []attribute.KeyValue{attribute.String("why", text)}}},
		}
		require.NotEqual(t, id.span, s.span)
		require.Equal(t, id.trace, s.trace)
		got := &tracepb.Span{}
		require.NoError(t, proto.Unmarshal(appendSpan(nil, &s), got))
		require.Empty(t, got.ProtoReflect().GetUnknown())
		want := &tracepb.Span{
			TraceId: s.trace[:], SpanId: s.span[:], ParentSpanId: id.span[:], Flags: spanFlags, Name: s.name,
			Kind: tracepb.Span_SPAN_KIND_CLIENT, StartTimeUnixNano: uint64(start.UnixNano()),
			EndTimeUnixNano: uint64(s.end.UnixNano()),
			Attributes: []*commonpb.KeyValue{
				entry("text", textValue(text)),
				entry("number", &commonpb.AnyValue{Value: &commonpb.AnyValue_IntValue{IntValue: int64(-length)}}),
				entry("real", &commonpb.AnyValue{Value: &commonpb.AnyValue_DoubleValue{DoubleValue: 0.5}}),
				entry("list", &commonpb.AnyValue{Value: &commonpb.AnyValue_ArrayValue{ArrayValue: &commonpb.ArrayValue{
					Values: []*commonpb.AnyValue{textValue(text), textValue(""), textValue("y")},
				}}}),
				entry("flag", textValue("true")),
			},
			Events: []*tracepb.Span_Event{{TimeUnixNano: uint64(start.UnixNano()), Name: "scored",
				Attributes: []*commonpb.KeyValue{entry("why", textValue(text))}}},
			Status: &tracepb.Status{Code: tracepb.Status_STATUS_CODE_ERROR, Message: text},
		}
		if !proto.Equal(want, got) {
			t.Fatalf("length %d: the span is not what was written", length)
		}
	}
}

// TestAppendSpan_NotUTF8: a text that is no UTF-8 does not make receivers refuse all spans of a request.
func TestAppendSpan_NotUTF8(t *testing.T) {
	s := span{identity: newTrace(), name: "chat \xff", start: time.Now(), end: time.Now()}
	got := &tracepb.Span{}
	require.NoError(t, proto.Unmarshal(appendSpan(nil, &s), got))
	require.Equal(t, "chat \uFFFD", got.Name)
}

func entry(key string, value *commonpb.AnyValue) *commonpb.KeyValue {
	return &commonpb.KeyValue{Key: key, Value: value}
}

func textValue(text string) *commonpb.AnyValue {
	return &commonpb.AnyValue{Value: &commonpb.AnyValue_StringValue{StringValue: text}}
}
