package tensorboard

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/goart-dev/art/internal/protofield"
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
	b := protofield.AppendDouble(nil, 1, seconds(e.wall))
	b = protofield.AppendVarint(b, 2, uint64(e.step))
	if e.start {
		b = protofield.AppendBytes(b, 7, protofield.AppendVarint(nil, 1, 1)) // session_log: START
	}
	if len(e.values) > 0 {
		var summary []byte
		for _, v := range e.values {
			summary = protofield.AppendBytes(summary, 1, v)
		}
		b = protofield.AppendBytes(b, 5, summary)
	}
	return b
}

// fileVersion is the first record of a file.
func fileVersion(now time.Time) []byte {
	return protofield.AppendBytes(protofield.AppendDouble(nil, 1, seconds(now)), 3, []byte("brain.Event:2"))
}

// scalars returns an event for each row.
func scalars(rows []track.Row) []event {
	rows = slices.Clone(rows)
	slices.SortStableFunc(rows, func(a, b track.Row) int { return cmp.Compare(a.Step, b.Step) })
	events := make([]event, len(rows))
	for i, row := range rows {
		events[i] = event{wall: row.Time, step: row.Step}
		for _, key := range slices.Sorted(maps.Keys(row.Metrics)) {
			v := protofield.AppendBytes(nil, 1, []byte(key))
			v = protofield.AppendFloat(v, 2, float32(row.Metrics[key])) // simple_value
			events[i].values = append(events[i].values, v)
		}
	}
	return events
}

// textValue returns a value of the plugin "text": a vector of Markdown texts.
func textValue(tag string, texts []string) value {
	shape := protofield.AppendBytes(nil, 2, protofield.AppendVarint(nil, 1, uint64(len(texts))))
	tensor := protofield.AppendBytes(protofield.AppendVarint(nil, 1, 7), 2, shape) // of strings
	for _, text := range texts {
		tensor = protofield.AppendBytes(tensor, 8, []byte(text))
	}
	return pluginValue(tag, "text", nil, tensor)
}

// pluginValue returns a value that a plugin of TensorBoard shows.
func pluginValue(tag, plugin string, content, tensor []byte) value {
	data := protofield.AppendBytes(nil, 1, []byte(plugin))
	if content != nil {
		data = protofield.AppendBytes(data, 2, content)
	}
	b := protofield.AppendBytes(nil, 1, []byte(tag))
	b = protofield.AppendBytes(b, 9, protofield.AppendBytes(nil, 1, data))
	return protofield.AppendBytes(b, 8, tensor)
}

func seconds(t time.Time) float64 { return float64(t.UnixNano()) / 1e9 }
