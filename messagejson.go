package art

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// wireError is what a failed UnmarshalJSON or MarshalJSON returns.
func wireError(op string, err error) error {
	if err == nil {
		return nil
	}
	return &Error{op, fmt.Errorf("%w: %w", ErrInvalid, err), "the form is that of OpenAI's chat completions"}
}

// UnmarshalJSON reads a message in OpenAI's wire form. Content is a string, null, absent, or a list of parts, of which
// Content holds the text parts, joined.
//
// [Message.MarshalJSON] writes back what was read: unknown fields, the order of keys, the form of the content. Fields
// that were changed since override what was read. A message whose role is missing, or in which a field has the wrong
// type, is an [ErrInvalid] that names the field.
func (m *Message) UnmarshalJSON(data []byte) error {
	return wireError("read message", m.decode(data))
}

// decode is UnmarshalJSON with a plain error.
func (m *Message) decode(data []byte) error {
	fields, err := parseObject(data)
	if err != nil {
		return err
	}
	d := decoder{fields: fields}
	read := Message{
		Role: Role(d.required("role")), Content: d.content(), Reasoning: d.text("reasoning_content"),
		ToolCallID: d.text("tool_call_id"), Name: d.text("name"),
	}
	for i, raw := range d.array("tool_calls") {
		var call ToolCall
		if err := call.decode(raw); err != nil && d.err == nil {
			d.err = within(fmt.Sprintf("tool_calls[%d]", i), err)
		}
		read.ToolCalls = append(read.ToolCalls, call)
	}
	if read.Role == "" {
		d.fail("role", "is empty")
	}
	if d.err != nil {
		return d.err
	}
	read.wire = keepWire(fields, read.known())
	*m = read
	return nil
}

// content returns the text of the content field.
func (d *decoder) content() string {
	text, problem := contentText(d.raw("content"))
	if problem != nil && d.err == nil {
		d.err = within("content", problem)
	}
	return text
}

// contentText returns the text of a content: a string itself, or the joined text parts of a list.
func contentText(raw json.RawMessage) (string, error) {
	switch kind := kindOf(raw); kind {
	case kindString:
		return stringOf(raw), nil
	case kindNull, "":
		return "", nil
	case kindArray:
		return partsText(raw)
	default:
		return "", fmt.Errorf("is %s, want a string, null or an array of parts", kind)
	}
}

// partsText joins the text parts. Parts of other types are ignored.
func partsText(raw json.RawMessage) (string, error) {
	var text strings.Builder
	for i, part := range parts(raw) {
		fields, err := parseObject(part)
		if err != nil {
			return "", within(fmt.Sprintf("[%d]", i), err)
		}
		d := decoder{fields: fields}
		if d.required("type") == "text" {
			text.WriteString(d.required("text"))
		}
		if d.err != nil {
			return "", within(fmt.Sprintf("[%d]", i), d.err)
		}
	}
	return text.String(), nil
}

// parts returns the elements of a JSON array.
func parts(raw json.RawMessage) []json.RawMessage {
	d := decoder{fields: []wireField{{key: "content", raw: raw}}}
	return d.array("content")
}

// media returns the content as it was read if it has parts that Content does not hold, such as images, else nil.
func (m *Message) media() json.RawMessage {
	for _, f := range m.wire {
		if f.key != "content" || kindOf(f.raw) != kindArray {
			continue
		}
		isMedia := func(part json.RawMessage) bool {
			fields, _ := parseObject(part) // was checked when it was read
			d := decoder{fields: fields}
			return d.text("type") != "text"
		}
		if slices.ContainsFunc(parts(f.raw), isMedia) {
			return f.raw
		}
	}
	return nil
}

// MarshalJSON writes OpenAI's wire form; see [Message.UnmarshalJSON]. A message made in Go has the keys role, content,
// reasoning_content, tool_calls, tool_call_id, name; empty ones are left out, and the content of a message that has
// only tool calls is null. A message without a role is an [ErrInvalid].
func (m Message) MarshalJSON() ([]byte, error) {
	if m.Role == "" {
		return nil, wireError("write message", &fieldError{"role", "is empty"})
	}
	return appendObject(nil, m.wire, m.known()), nil
}

// known returns the wire form of the Go fields.
func (m *Message) known() []knownField {
	content := quote(m.Content)
	if m.Content == "" && len(m.ToolCalls) > 0 {
		content = json.RawMessage("null")
	}
	return []knownField{
		textField("role", string(m.Role)),
		{key: "content", raw: content, zero: m.Content == "", says: func(raw json.RawMessage) bool {
			text, err := contentText(raw)
			return err == nil && text == m.Content
		}},
		textField("reasoning_content", m.Reasoning),
		{key: "tool_calls", raw: m.callsJSON(), zero: len(m.ToolCalls) == 0, says: func(json.RawMessage) bool {
			return len(m.ToolCalls) == 0 // of tool calls only null and [] are kept
		}},
		textField("tool_call_id", m.ToolCallID),
		textField("name", m.Name),
	}
}

// textField is an optional string field.
func textField(key, value string) knownField {
	k := knownField{key: key, zero: value == "", says: func(raw json.RawMessage) bool { return stringOf(raw) == value }}
	if value != "" {
		k.raw = quote(value)
	}
	return k
}

// callsJSON writes the tool calls; nil when there is none.
func (m *Message) callsJSON() json.RawMessage {
	if len(m.ToolCalls) == 0 {
		return nil
	}
	b := []byte{'['}
	for i := range m.ToolCalls {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, m.ToolCalls[i].encode()...)
	}
	return append(b, ']')
}
