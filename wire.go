package art

import (
	"bytes"
	"encoding/json"
	"slices"
)

// wireField is one field of a JSON object that was read; the fields are in their original order.
type wireField struct {
	key string
	// raw is the value as it was written; nil when it equals the canonical form of the Go fields.
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
	// zero is set when the Go value is empty: an object that was read without the field stays without it.
	zero bool
	// says reports whether raw, which was read, still equals the Go value.
	says func(raw json.RawMessage) bool
}

// present reports whether the canonical form has the field.
func (k *knownField) present() bool { return k.raw != nil || k.sub != nil }

// keepWire returns what an object that was read has beyond the canonical form of known; nil when there is nothing.
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

// isCanonical reports whether fields are those that writing known gives.
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

// sameForm reports whether writing canonical in place of raw loses nothing but insignificant detail.
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

// appendObject writes an object: the fields that were read in their original order, then those added in Go.
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

// appendField writes key and value, after a comma if needed.
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
