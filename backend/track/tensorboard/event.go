package tensorboard

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/goart-dev/art/internal/track"
)

// The field numbers are those of event.proto, summary.proto and tensor.proto of TensorBoard 2.21.

// event is a record of an event file.
type event struct {
	wall   time.Time
	step   int
	start  bool // a session starts: readers forget what they have from step on
	values []value
}

// value is a field "value" of a Summary, without tag and length.
type value []byte

// encode returns the Event message.
func (e event) encode() []byte {
	b := appendDouble(nil, 1, seconds(e.wall))
	b = appendVarint(b, 2, uint64(e.step))
	if e.start {
		b = appendBytes(b, 7, appendVarint(nil, 1, 1)) // session_log: START
	}
	if len(e.values) > 0 {
		var summary []byte
		for _, v := range e.values {
			summary = appendBytes(summary, 1, v)
		}
		b = appendBytes(b, 5, summary)
	}
	return b
}

// fileVersion is the first record of a file.
func fileVersion(now time.Time) []byte {
	return appendBytes(appendDouble(nil, 1, seconds(now)), 3, []byte("brain.Event:2"))
}

// scalars returns an event for each row.
func scalars(rows []track.Row) []event {
	rows = slices.Clone(rows)
	slices.SortStableFunc(rows, func(a, b track.Row) int { return cmp.Compare(a.Step, b.Step) })
	events := make([]event, len(rows))
	for i, row := range rows {
		events[i] = event{wall: row.Time, step: row.Step}
		for _, key := range slices.Sorted(maps.Keys(row.Metrics)) {
			v := appendBytes(nil, 1, []byte(key))
			v = protowire.AppendTag(v, 2, protowire.Fixed32Type) // simple_value
			v = protowire.AppendFixed32(v, math.Float32bits(float32(row.Metrics[key])))
			events[i].values = append(events[i].values, v)
		}
	}
	return events
}

// textValue returns a value of the plugin "text": a vector of Markdown texts.
func textValue(tag string, texts []string) value {
	shape := appendBytes(nil, 2, appendVarint(nil, 1, uint64(len(texts))))
	tensor := appendBytes(appendVarint(nil, 1, 7), 2, shape) // of strings
	for _, text := range texts {
		tensor = appendBytes(tensor, 8, []byte(text))
	}
	return pluginValue(tag, "text", nil, tensor)
}

// pluginValue returns a value that a plugin of TensorBoard shows.
func pluginValue(tag, plugin string, content, tensor []byte) value {
	data := appendBytes(nil, 1, []byte(plugin))
	if content != nil {
		data = appendBytes(data, 2, content)
	}
	b := appendBytes(nil, 1, []byte(tag))
	b = appendBytes(b, 9, appendBytes(nil, 1, data))
	return appendBytes(b, 8, tensor)
}

func seconds(t time.Time) float64 { return float64(t.UnixNano()) / 1e9 }

func appendVarint(b []byte, field protowire.Number, v uint64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(b, field, protowire.VarintType), v)
}

func appendDouble(b []byte, field protowire.Number, v float64) []byte {
	return protowire.AppendFixed64(protowire.AppendTag(b, field, protowire.Fixed64Type), math.Float64bits(v))
}

func appendBytes(b []byte, field protowire.Number, v []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(b, field, protowire.BytesType), v)
}
