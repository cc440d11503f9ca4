package art

import "encoding/json"

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
