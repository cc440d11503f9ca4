package otel

import (
	"math/rand/v2"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/goart-dev/art/internal/protofield"
)

// Spans are written in protobuf as they are made, since all of them are of what has happened already: OpenTelemetry's
// SDK and the messages of its exporter take several times as long. The numbers of fields are those of
// opentelemetry/proto/trace/v1/trace.proto and common/v1/common.proto.

// Values of enumerations.
const (
	kindInternal, kindClient = 1, 3
	statusError              = 2
	// spanFlags say that a span is sampled, and that its parent is known not to be of another process.
	spanFlags = 0x101
)

// identity is the identifiers of a span.
type identity struct {
	trace [16]byte
	span  [8]byte
}

func newTrace() (id identity) {
	fill(id.trace[:])
	fill(id.span[:])
	return id
}

// child is a new span of the same trace.
func (id identity) child() identity {
	fill(id.span[:])
	return id
}

// fill fills a list of 8 or 16 bytes at random. Zeros would be no identifier.
func fill(id []byte) {
	for i := 0; i < len(id); i += 8 {
		x := rand.Uint64() | 1
		for j := range 8 {
			id[i+j] = byte(x >> (8 * j))
		}
	}
}

// span is what is written of one.
type span struct {
	identity
	parent     []byte // nil for none
	name       string
	kind       uint64
	start, end time.Time
	attributes []attribute.KeyValue
	events     []event
	failed     bool
	message    string // of the failure
}

// event is something that happened at a time within a span.
type event struct {
	name       string
	time       time.Time
	attributes []attribute.KeyValue
}

func appendSpan(b []byte, s *span) []byte {
	b = protofield.AppendBytes(b, 1, s.trace[:])
	b = protofield.AppendBytes(b, 2, s.span[:])
	if s.parent != nil {
		b = protofield.AppendBytes(b, 4, s.parent)
	}
	b = appendText(b, 5, s.name)
	b = protofield.AppendVarint(b, 6, s.kind)
	b = appendTime(b, 7, s.start)
	b = appendTime(b, 8, s.end)
	for _, a := range s.attributes {
		b = protofield.AppendMessage(b, 9, func(b []byte) []byte { return appendAttribute(b, a) })
	}
	for _, e := range s.events {
		b = protofield.AppendMessage(b, 11, func(b []byte) []byte { return appendEvent(b, e) })
	}
	if s.failed {
		b = protofield.AppendMessage(b, 15, func(b []byte) []byte {
			if s.message != "" {
				b = appendText(b, 2, s.message)
			}
			return protofield.AppendVarint(b, 3, statusError)
		})
	}
	return protofield.AppendFixed32(b, 16, spanFlags)
}

func appendEvent(b []byte, e event) []byte {
	b = appendTime(b, 1, e.time)
	b = appendText(b, 2, e.name)
	for _, a := range e.attributes {
		b = protofield.AppendMessage(b, 3, func(b []byte) []byte { return appendAttribute(b, a) })
	}
	return b
}

func appendAttribute(b []byte, a attribute.KeyValue) []byte {
	b = appendText(b, 1, string(a.Key))
	return protofield.AppendMessage(b, 2, func(b []byte) []byte { return appendValue(b, a.Value) })
}

// appendValue appends a message AnyValue of the types that attributes here have; others are texts.
func appendValue(b []byte, v attribute.Value) []byte {
	switch v.Type() {
	case attribute.INT64:
		return protofield.AppendVarint(b, 3, uint64(v.AsInt64()))
	case attribute.FLOAT64:
		return protofield.AppendDouble(b, 4, v.AsFloat64())
	case attribute.STRINGSLICE:
		return protofield.AppendMessage(b, 5, func(b []byte) []byte {
			for _, text := range v.AsStringSlice() {
				b = protofield.AppendMessage(b, 1, func(b []byte) []byte { return appendText(b, 1, text) })
			}
			return b
		})
	}
	return appendText(b, 1, v.String())
}

// appendTime appends nanoseconds since 1970.
func appendTime(b []byte, field protowire.Number, t time.Time) []byte {
	return protofield.AppendFixed64(b, field, uint64(max(0, t.UnixNano())))
}

// appendText appends a text, also an empty one: a value must have some type. Protobuf wants UTF-8: receivers refuse a
// request with anything else.
func appendText(b []byte, field protowire.Number, text string) []byte {
	b = protowire.AppendTag(b, field, protowire.BytesType)
	return protowire.AppendString(b, strings.ToValidUTF8(text, "\uFFFD"))
}
