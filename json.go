package art

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
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
	if parent != "" && e.path != "" && e.path[0] != '[' {
		parent += "."
	}
	return &fieldError{parent + e.path, e.problem}
}

// decoder reads known fields of an object and keeps the first problem.
type decoder struct {
	fields []wireField
	err    error
}

// newDecoder returns the decoder of an object. Its error is that of parseObject.
func newDecoder(data []byte) *decoder {
	fields, err := parseObject(data)
	d := &decoder{fields: fields}
	d.nested("", err)
	return d
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

func (d *decoder) fail(key, format string, args ...any) {
	if d.err == nil {
		d.err = &fieldError{key, fmt.Sprintf(format, args...)}
	}
}

// nested records the error of what stands at a path, unless there is an error already.
func (d *decoder) nested(path string, err error) {
	if d.err == nil {
		d.err = within(path, err)
	}
}

// into decodes a field into v. Absent and null leave v as it is.
func (d *decoder) into(key string, v any) {
	if raw := d.raw(key); raw != nil && kindOf(raw) != kindNull {
		d.nested(key, json.Unmarshal(raw, v))
	}
}

// elements reads the elements of an array field.
func elements[T any](d *decoder, key string, read func(*T, []byte) error) (out []T) {
	for i, raw := range d.array(key) {
		var x T
		d.nested(fmt.Sprintf("%s[%d]", key, i), read(&x, raw))
		out = append(out, x)
	}
	return out
}

// entries reads the entries of an object field, in the order of keys.
func entries[T any](d *decoder, field string, read func([]byte) (T, error)) map[string]T {
	raw, out := map[string]json.RawMessage{}, map[string]T{}
	d.into(field, &raw)
	for _, key := range slices.Sorted(maps.Keys(raw)) {
		x, err := read(raw[key])
		d.nested(fmt.Sprintf("%s[%q]", field, key), err)
		out[key] = x
	}
	return out
}

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

func quote(s string) json.RawMessage { return appendQuoted(make([]byte, 0, len(s)+2), s) }

// appendQuoted writes s as a JSON string: as encoding/json does, without its escapes for HTML and JavaScript.
func appendQuoted(b []byte, s string) []byte {
	if !utf8.ValidString(s) {
		raw, _ := json.Marshal(s) // strings always encode
		return append(b, unescape(raw)...)
	}
	b = append(b, '"')
	written := 0
	for i := range len(s) {
		if c := s[i]; c < ' ' || c == '"' || c == '\\' {
			b = append(b, s[written:i]...)
			b = appendEscaped(b, c)
			written = i + 1
		}
	}
	b = append(b, s[written:]...)
	return append(b, '"')
}

func appendEscaped(b []byte, c byte) []byte {
	if i := strings.IndexByte("\"\\\b\f\n\r\t", c); i >= 0 {
		return append(b, '\\', `"\bfnrt`[i])
	}
	const digits = "0123456789abcdef"
	return append(b, '\\', 'u', '0', '0', digits[c>>4], digits[c&15])
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

// number is a float64 in stored JSON. What JSON has no number for is a string: "NaN", "Infinity", "-Infinity".
type number float64

// MarshalJSON implements [json.Marshaler].
func (n number) MarshalJSON() ([]byte, error) { return appendNumber(nil, float64(n), 64), nil }

// UnmarshalJSON implements [json.Unmarshaler].
func (n *number) UnmarshalJSON(data []byte) error {
	x, err := parseNumber(string(data), 64)
	*n = number(x)
	return err
}

// numbers32 is a list of float32 in stored JSON, each in the fewest digits that give it back.
type numbers32 []float32

// MarshalJSON implements [json.Marshaler].
func (n numbers32) MarshalJSON() ([]byte, error) {
	b := []byte{'['}
	for i, x := range n {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendNumber(b, float64(x), 32)
	}
	return append(b, ']'), nil
}

// UnmarshalJSON implements [json.Unmarshaler].
func (n *numbers32) UnmarshalJSON(data []byte) error {
	data = bytes.TrimSpace(data)
	if kind := kindOf(data); kind != kindArray {
		return fmt.Errorf("is %s, want an array of numbers", kind)
	}
	*n = nil
	inner := strings.TrimSpace(string(data[1 : len(data)-1]))
	if inner == "" {
		return nil
	}
	for i, text := range strings.Split(inner, ",") {
		x, err := parseNumber(strings.TrimSpace(text), 32)
		if err != nil {
			return within(fmt.Sprintf("[%d]", i), err)
		}
		*n = append(*n, float32(x))
	}
	return nil
}

// appendNumber writes x in the fewest digits of its size that give it back.
func appendNumber(b []byte, x float64, bits int) []byte {
	switch {
	case math.IsNaN(x):
		return append(b, `"NaN"`...)
	case math.IsInf(x, 1):
		return append(b, `"Infinity"`...)
	case math.IsInf(x, -1):
		return append(b, `"-Infinity"`...)
	}
	return strconv.AppendFloat(b, x, 'g', -1, bits)
}

// parseNumber reads one JSON value that [appendNumber] can write.
func parseNumber(text string, bits int) (float64, error) {
	switch text {
	case `"NaN"`:
		return math.NaN(), nil
	case `"Infinity"`:
		return math.Inf(1), nil
	case `"-Infinity"`:
		return math.Inf(-1), nil
	}
	if kindOf([]byte(text)) != kindNumber {
		return 0, fmt.Errorf("is %.40s, want a number", text)
	}
	x, err := strconv.ParseFloat(text, bits)
	if err != nil {
		return 0, fmt.Errorf("is %.40s, which is no float%d", text, bits)
	}
	return x, nil
}

// label is a value of Metadata in stored JSON. An int has no point and no exponent, a float64 has one of them; NaN and
// infinities are {"float":"NaN"} and so on.
type label struct{ value any }

// specialFloat is the form of a float64 label that JSON has no number for.
type specialFloat struct {
	Float number `json:"float"`
}

// MarshalJSON implements [json.Marshaler].
func (l label) MarshalJSON() ([]byte, error) {
	switch v := l.value.(type) {
	case nil, string, bool, int:
		return json.Marshal(v)
	case float64:
		if !finite(v) {
			return json.Marshal(specialFloat{number(v)})
		}
		b := appendNumber(nil, v, 64)
		if !bytes.ContainsAny(b, ".e") {
			b = append(b, ".0"...)
		}
		return b, nil
	}
	return nil, fmt.Errorf("is a %T, want string, bool, int, float64 or nil", l.value)
}

// UnmarshalJSON implements [json.Unmarshaler].
func (l *label) UnmarshalJSON(data []byte) error {
	switch kind := kindOf(data); kind {
	case kindObject:
		var special specialFloat
		if err := json.Unmarshal(data, &special); err != nil {
			return err
		}
		l.value = float64(special.Float)
		return nil
	case kindNumber:
		text := string(data)
		if strings.ContainsAny(text, ".eE") {
			x, err := parseNumber(text, 64)
			l.value = x
			return err
		}
		n, err := strconv.Atoi(text)
		if err != nil {
			return fmt.Errorf("is %.40s, which is no int", text)
		}
		l.value = n
		return nil
	case kindArray:
		return fmt.Errorf("is %s, want a string, bool, number or null", kind)
	}
	return json.Unmarshal(data, &l.value)
}
