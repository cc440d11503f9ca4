package art

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
)

// wireField is one field of a JSON object that was read, in its place.
type wireField struct {
	key string
	// raw is the value as it was written; nil when it is what the Go fields say in canonical form.
	raw json.RawMessage
	// sub are the fields of a nested object of which Go fields hold a part.
	sub []wireField
}

// knownField is a field of a JSON object that Go fields hold.
type knownField struct {
	key string
	// raw is the canonical form of the Go value; nil leaves the field out.
	raw json.RawMessage
	// sub are the fields of a nested object, in place of raw.
	sub []knownField
	// zero tells that the Go value is empty: an object that was read without the field stays without it.
	zero bool
	// says tells whether raw, which was read, still says what the Go value is.
	says func(raw json.RawMessage) bool
}

// present tells whether the canonical form has the field.
func (k *knownField) present() bool { return k.raw != nil || k.sub != nil }

// keepWire returns what an object that was read has beyond the canonical form of known; nil when that is nothing.
func keepWire(read []wireField, known []knownField) []wireField {
	out := make([]wireField, 0, len(read))
	for _, f := range read {
		k := findKnown(known, f.key)
		switch {
		case k == nil:
			f.raw = normalize(f.raw)
		case k.sub != nil:
			nested, _ := parseObject(f.raw) // known is what was decoded from it
			f.sub, f.raw = keepWire(nested, k.sub), nil
		case sameForm(f.raw, k.raw):
			f.raw = nil
		default:
			f.raw = normalize(f.raw)
		}
		out = append(out, f)
	}
	if isCanonical(out, known) {
		return nil
	}
	return out
}

// isCanonical tells whether fields are those that writing known gives.
func isCanonical(fields []wireField, known []knownField) bool {
	i := 0
	for k := range known {
		if !known[k].present() {
			continue
		}
		if i == len(fields) || fields[i].key != known[k].key || fields[i].raw != nil || fields[i].sub != nil {
			return false
		}
		i++
	}
	return i == len(fields)
}

// sameForm tells whether writing canonical in place of raw loses nothing but insignificant detail.
func sameForm(raw, canonical json.RawMessage) bool {
	a, b := kindOf(raw), kindOf(canonical)
	switch {
	case canonical == nil || a != b:
		return false
	case a == kindString:
		return stringOf(raw) == stringOf(canonical)
	case a == kindArray:
		return len(canonical) > len("[]") // of objects that keep their own form
	}
	return bytes.Equal(normalize(raw), normalize(canonical))
}

// appendObject writes an object: the fields that were read in their places, then what has been added in Go.
func appendObject(b []byte, read []wireField, known []knownField) []byte {
	b = append(b, '{')
	for _, f := range read {
		k := findKnown(known, f.key)
		switch {
		case k == nil || f.raw != nil && k.says(f.raw):
			b = appendField(b, f.key, f.raw)
		case k.sub != nil && f.sub != nil:
			b = appendField(b, f.key, appendObject(nil, f.sub, k.sub))
		default:
			b = appendKnown(b, k)
		}
	}
	for i := range known {
		isRead := slices.ContainsFunc(read, func(f wireField) bool { return f.key == known[i].key })
		if !isRead && (read == nil || !known[i].zero) {
			b = appendKnown(b, &known[i])
		}
	}
	return append(b, '}')
}

// appendKnown writes the canonical form of a field.
func appendKnown(b []byte, k *knownField) []byte {
	switch {
	case k.sub != nil:
		return appendField(b, k.key, appendObject(nil, nil, k.sub))
	case k.raw != nil:
		return appendField(b, k.key, k.raw)
	}
	return b
}

// appendField writes key and value, and a comma before them where one belongs.
func appendField(b []byte, key string, value []byte) []byte {
	if b[len(b)-1] != '{' {
		b = append(b, ',')
	}
	b = append(b, quote(key)...)
	b = append(b, ':')
	return append(b, value...)
}

// findKnown returns the known field of that key, or nil.
func findKnown(known []knownField, key string) *knownField {
	for i := range known {
		if known[i].key == key {
			return &known[i]
		}
	}
	return nil
}

// parseObject reads the fields of one object in order. Of a key that is there twice the last value counts, as it does for
// encoding/json, in the place of the first.
func parseObject(data []byte) ([]wireField, error) {
	if !json.Valid(data) {
		return nil, errors.New("is not valid JSON")
	}
	if kind := kindOf(data); kind != kindObject {
		return nil, fmt.Errorf("is %s, want an object", kind)
	}
	d := json.NewDecoder(bytes.NewReader(data))
	_, _ = d.Token()                                 // the opening brace
	fields, place := []wireField{}, map[string]int{} // of each key
	for d.More() {
		key, _ := d.Token() // valid JSON has a string here
		f := wireField{key: key.(string)}
		if err := d.Decode(&f.raw); err != nil {
			return nil, err
		}
		if i, twice := place[f.key]; twice {
			fields[i] = f
			continue
		}
		place[f.key] = len(fields)
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
// json.Marshaler returns. Values compare the same before and after a pass through json.Marshal then.
func normalize(raw []byte) json.RawMessage {
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil {
		return bytes.Clone(raw) // not JSON: the caller's to refuse
	}
	return unescape(b.Bytes())
}

// unescape writes the characters that encoding/json escapes for the sake of HTML and JavaScript as themselves.
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
