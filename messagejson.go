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

// UnmarshalJSON reads a tool call in OpenAI's wire form. Arguments is the text of function.arguments; from servers that
// send an object instead it is that object's JSON. Calls of another type than "function" are kept as read, and have no
// Name. It keeps unknown fields and reports errors like [Message.UnmarshalJSON].
func (c *ToolCall) UnmarshalJSON(data []byte) error {
	return wireError("read tool call", c.decode(data))
}

// decode is UnmarshalJSON with a plain error.
func (c *ToolCall) decode(data []byte) error {
	fields, err := parseObject(data)
	if err != nil {
		return err
	}
	d := decoder{fields: fields}
	read := ToolCall{ID: d.text("id")}
	if function := d.function(); function != nil {
		read.Name, read.Arguments = function.required("name"), function.arguments()
		d.err = firstError(d.err, within("function", function.err))
	}
	if d.err != nil {
		return d.err
	}
	read.wire = keepWire(fields, read.known(d.raw("function") != nil))
	*c = read
	return nil
}

// function returns the decoder of the field "function". It is nil, and no error, for other types than "function".
func (d *decoder) function() *decoder {
	raw, kind := d.raw("function"), d.text("type")
	if raw == nil {
		if kind == "" || kind == "function" {
			d.fail("function", "is missing")
		}
		return nil
	}
	fields, err := parseObject(raw)
	if err != nil {
		d.err = firstError(d.err, within("function", err))
		return nil
	}
	return &decoder{fields: fields}
}

// arguments returns the text of the arguments.
func (d *decoder) arguments() string {
	raw := d.raw("arguments")
	if kindOf(raw) == kindObject {
		return string(normalize(raw))
	}
	return d.text("arguments")
}

// MarshalJSON writes OpenAI's wire form; see [ToolCall.UnmarshalJSON].
func (c ToolCall) MarshalJSON() ([]byte, error) { return c.encode(), nil }

// encode is MarshalJSON without an error.
func (c *ToolCall) encode() []byte {
	// Only a call that was read without a function has none.
	isFunction := c.wire == nil || hasFunction(c.wire) || c.Name != ""
	return appendObject(nil, c.wire, c.known(isFunction))
}

// hasFunction reports whether an object that was read has the field "function".
func hasFunction(wire []wireField) bool {
	for _, f := range wire {
		if f.key == "function" {
			return true
		}
	}
	return false
}

// known returns the wire form of the Go fields.
func (c *ToolCall) known(isFunction bool) []knownField {
	id := textField("id", c.ID)
	id.raw = quote(c.ID)
	known := []knownField{id, typeField()}
	if !isFunction {
		return known
	}
	name := textField("name", c.Name)
	name.raw = quote(c.Name)
	arguments := knownField{key: "arguments", raw: quote(c.Arguments), zero: c.Arguments == "", says: c.argumentsAre}
	return append(known, knownField{key: "function", sub: []knownField{name, arguments}})
}

// argumentsAre reports whether raw, which was read, still says Arguments.
func (c *ToolCall) argumentsAre(raw json.RawMessage) bool {
	if kindOf(raw) == kindObject {
		return string(raw) == c.Arguments
	}
	return stringOf(raw) == c.Arguments
}

// typeField is the type of a tool or a call. No Go field holds it, so what was read stays.
func typeField() knownField {
	return knownField{key: "type", raw: quote("function"), zero: true, says: func(json.RawMessage) bool { return true }}
}

// UnmarshalJSON reads a tool in OpenAI's wire form. Parameters are kept as read, without insignificant space. Tools of
// another type than "function" are kept as read, and have no Name. It keeps unknown fields and reports errors like
// [Message.UnmarshalJSON].
func (t *Tool) UnmarshalJSON(data []byte) error {
	return wireError("read tool", t.decode(data))
}

// decode is UnmarshalJSON with a plain error.
func (t *Tool) decode(data []byte) error {
	fields, err := parseObject(data)
	if err != nil {
		return err
	}
	d := decoder{fields: fields}
	var read Tool
	if function := d.function(); function != nil {
		read.Name, read.Description = function.required("name"), function.text("description")
		read.Parameters = function.parameters()
		d.err = firstError(d.err, within("function", function.err))
	}
	if d.err != nil {
		return d.err
	}
	read.wire = keepWire(fields, read.known(d.raw("function") != nil))
	*t = read
	return nil
}

// parameters returns the schema, which is an object, true or false; absent and null are nil.
func (d *decoder) parameters() json.RawMessage {
	raw := d.raw("parameters")
	switch kind := kindOf(raw); kind {
	case kindNull, "":
		return nil
	case kindObject, kindBool:
		return normalize(raw)
	default:
		d.fail("parameters", "is %s, want an object", kind)
		return nil
	}
}

// MarshalJSON writes OpenAI's wire form; see [Tool.UnmarshalJSON]. Empty Description and Parameters are left out.
// Parameters that are not JSON are an [ErrInvalid].
func (t Tool) MarshalJSON() ([]byte, error) {
	if t.Parameters != nil && !json.Valid(t.Parameters) {
		return nil, wireError("write tool", &fieldError{"function.parameters", "of " + t.Name + " is not valid JSON"})
	}
	isFunction := t.wire == nil || hasFunction(t.wire) || t.Name != ""
	return appendObject(nil, t.wire, t.known(isFunction)), nil
}

// known returns the wire form of the Go fields.
func (t *Tool) known(isFunction bool) []knownField {
	known := []knownField{typeField()}
	if !isFunction {
		return known
	}
	name := textField("name", t.Name)
	name.raw = quote(t.Name)
	parameters := knownField{key: "parameters", zero: t.Parameters == nil, says: func(json.RawMessage) bool {
		return t.Parameters == nil // only null is kept
	}}
	if t.Parameters != nil {
		parameters.raw = normalize(t.Parameters)
	}
	sub := []knownField{name, textField("description", t.Description), parameters}
	return append(known, knownField{key: "function", sub: sub})
}
