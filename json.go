package art

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// fieldError says which field of a JSON value is wrong.
type fieldError struct {
	path    string // "tool_calls[1].function.name", "" for the value itself
	problem string
}

// Error implements error.
func (e *fieldError) Error() string { return strings.TrimSpace(e.path + " " + e.problem) }

// within prepends a field or an index to the path of err.
func within(parent string, err error) error {
	if err == nil {
		return nil
	}
	e := &fieldError{problem: err.Error()}
	errors.As(err, &e)
	return &fieldError{join(parent, e.path), e.problem}
}

// join joins two parts of the path of a field.
func join(parent, path string) string {
	if parent == "" || path == "" || path[0] == '[' {
		return parent + path
	}
	return parent + "." + path
}

// decoder reads known fields of an object and keeps the first problem.
type decoder struct {
	fields []wireField
	err    error
}

// raw returns the value of a key, nil when it is absent.
func (d *decoder) raw(key string) json.RawMessage {
	for _, f := range d.fields {
		if f.key == key {
			return f.raw
		}
	}
	return nil
}

// fail records a problem of a field unless there is one already.
func (d *decoder) fail(key, format string, args ...any) {
	if d.err == nil {
		d.err = &fieldError{key, fmt.Sprintf(format, args...)}
	}
}

// text returns a string field; absent and null are "".
func (d *decoder) text(key string) string {
	raw := d.raw(key)
	if kind := kindOf(raw); kind != kindString && kind != kindNull && kind != "" {
		d.fail(key, "is %s, want a string", kind)
	}
	return stringOf(raw)
}

// required returns a string field that must be there.
func (d *decoder) required(key string) string {
	if kind := kindOf(d.raw(key)); kind == "" || kind == kindNull {
		d.fail(key, "is missing")
	}
	return d.text(key)
}

// array returns the elements of an array field; absent and null are none.
func (d *decoder) array(key string) []json.RawMessage {
	raw := d.raw(key)
	var out []json.RawMessage
	switch kind := kindOf(raw); kind {
	case kindArray:
		_ = json.Unmarshal(raw, &out) // of valid JSON there is no error
	case kindNull, "":
	default:
		d.fail(key, "is %s, want an array", kind)
	}
	return out
}

// parseObject reads the fields of one object in order. Of a duplicate key the last value counts, as in encoding/json,
// at the position of the first.
func parseObject(data []byte) ([]wireField, error) {
	if !json.Valid(data) {
		return nil, errors.New("is not valid JSON")
	}
	if kind := kindOf(data); kind != kindObject {
		return nil, fmt.Errorf("is %s, want an object", kind)
	}
	d := json.NewDecoder(bytes.NewReader(data))
	_, _ = d.Token()                                 // the opening brace
	fields, index := []wireField{}, map[string]int{} // by key
	for d.More() {
		key, _ := d.Token() // valid JSON has a string here
		f := wireField{key: key.(string)}
		if err := d.Decode(&f.raw); err != nil {
			return nil, err
		}
		if i, twice := index[f.key]; twice {
			fields[i] = f
			continue
		}
		index[f.key] = len(fields)
		fields = append(fields, f)
	}
	return fields, nil
}

// Types of JSON values, in the words of errors.
const (
	kindObject = "an object"
	kindArray  = "an array"
	kindString = "a string"
	kindNumber = "a number"
	kindBool   = "a boolean"
	kindNull   = "null"
)

// kindOf names the type of a JSON value, "" of nothing.
func kindOf(raw []byte) string {
	raw = bytes.TrimLeft(raw, " \t\r\n")
	if len(raw) == 0 {
		return ""
	}
	switch raw[0] {
	case '{':
		return kindObject
	case '[':
		return kindArray
	case '"':
		return kindString
	case 't', 'f':
		return kindBool
	case 'n':
		return kindNull
	}
	return kindNumber
}

// stringOf decodes a JSON string, "" of anything else.
func stringOf(raw []byte) string {
	var s string
	if kindOf(raw) == kindString {
		_ = json.Unmarshal(raw, &s) // of a valid string, which raw is, there is no error
	}
	return s
}

// quote encodes s as a JSON string.
func quote(s string) json.RawMessage {
	raw, _ := json.Marshal(s) // strings always encode
	return unescape(raw)
}

// normalize returns raw without insignificant space and without the escapes that encoding/json adds to what a
// json.Marshaler returns, so that values compare the same before and after a pass through json.Marshal.
func normalize(raw []byte) json.RawMessage {
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil {
		return bytes.Clone(raw) // not JSON: the caller refuses it
	}
	return unescape(b.Bytes())
}

// unescape undoes the escapes that encoding/json adds for HTML and JavaScript.
func unescape(raw []byte) json.RawMessage {
	out := make(json.RawMessage, 0, len(raw))
	for i := 0; i < len(raw); {
		if raw[i] != '\\' || i+1 == len(raw) {
			out = append(out, raw[i])
			i++
			continue
		}
		if plain, ok := htmlEscapes[string(bytes.ToLower(raw[i:min(i+6, len(raw))]))]; ok {
			out = append(out, plain...)
			i += 6
			continue
		}
		out = append(out, raw[i:i+2]...) // the second byte may be a backslash that begins nothing
		i += 2
	}
	return out
}

var htmlEscapes = map[string]string{
	`\u003c`: "<", `\u003e`: ">", `\u0026`: "&", `\u2028`: "\u2028", `\u2029`: "\u2029",
}

// firstError returns the first error that is one.
func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
