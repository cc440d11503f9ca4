package art

import (
	"encoding/json"
	"errors"
	"fmt"
)

// Example is one line of a file of training data in OpenAI's fine-tuning format: {"messages": [...], "tools": [...]}.
//
// What was read is written back the same but for insignificant space: unknown fields of the line, of its messages and
// of its tools, and the order of keys; see [Message.UnmarshalJSON]. Unknown fields have no effect on training: that
// goes for OpenAI's weight of a message too.
type Example struct {
	History

	wire []wireField // what the fields above do not hold; nil for an example made in Go
}

// UnmarshalJSON reads a line. One without messages, or in which a field has the wrong type, is an [ErrInvalid] that
// names the field.
func (e *Example) UnmarshalJSON(data []byte) error { return wireError("read example", e.decode(data)) }

// decode is UnmarshalJSON with a plain error.
func (e *Example) decode(data []byte) error {
	fields, err := parseObject(data)
	if err != nil {
		return err
	}
	d := decoder{fields: fields}
	var read Example
	for i, raw := range d.array("messages") {
		var m Message
		d.err = firstError(d.err, within(fmt.Sprintf("messages[%d]", i), m.decode(raw)))
		read.Messages = append(read.Messages, m)
	}
	for i, raw := range d.array("tools") {
		var t Tool
		d.err = firstError(d.err, within(fmt.Sprintf("tools[%d]", i), t.decode(raw)))
		read.Tools = append(read.Tools, t)
	}
	if len(read.Messages) == 0 {
		d.fail("messages", "is missing or empty")
	}
	if d.err != nil {
		return d.err
	}
	known, err := read.known()
	if err != nil {
		return err
	}
	read.wire = keepWire(fields, known)
	*e = read
	return nil
}

// MarshalJSON writes a line; see [Example.UnmarshalJSON]. Samples are not part of it. An example without messages is an
// [ErrInvalid].
func (e Example) MarshalJSON() ([]byte, error) {
	if len(e.Messages) == 0 {
		return nil, wireError("write example", errors.New("messages is empty"))
	}
	known, err := e.known()
	if err != nil {
		return nil, err
	}
	return appendObject(nil, e.wire, known), nil
}

// known returns the wire form of the Go fields.
func (e *Example) known() ([]knownField, error) {
	messages, err := arrayOf(e.Messages)
	if err != nil {
		return nil, err
	}
	tools, err := arrayOf(e.Tools)
	if err != nil {
		return nil, err
	}
	return []knownField{
		{key: "messages", raw: messages, says: func(json.RawMessage) bool { return false }},
		{key: "tools", raw: tools, zero: tools == nil, says: func(json.RawMessage) bool {
			return tools == nil // of tools only null and [] are kept
		}},
	}, nil
}

// arrayOf writes a list as JSON; nil when it is empty.
func arrayOf[T json.Marshaler](list []T) (json.RawMessage, error) {
	if len(list) == 0 {
		return nil, nil
	}
	b := json.RawMessage{'['}
	for i := range list {
		element, err := list[i].MarshalJSON()
		if err != nil {
			return nil, err
		}
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, element...)
	}
	return append(b, ']'), nil
}

// Trajectory returns the example as a trajectory for [Model.TrainSFT]. It shares the messages and tools of e.
func (e *Example) Trajectory() *Trajectory {
	return &Trajectory{History: e.History, Metrics: map[string]float64{}, Metadata: map[string]any{}}
}
