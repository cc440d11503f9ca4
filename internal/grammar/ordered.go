package grammar

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// member is a member of a JSON object.
type member struct {
	key   string
	value json.RawMessage
}

// members returns the members of a JSON object in their order. A repeated key is an error.
func members(raw json.RawMessage) ([]member, error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	if open, err := d.Token(); err != nil || open != json.Delim('{') {
		return nil, errors.New("must be an object")
	}
	var out []member
	seen := map[string]bool{}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return nil, err
		}
		m := member{key: key.(string)}
		if err := d.Decode(&m.value); err != nil {
			return nil, err
		}
		if seen[m.key] {
			return nil, fmt.Errorf("has the key %q twice", m.key)
		}
		seen[m.key] = true
		out = append(out, m)
	}
	return out, nil
}

// elements returns the elements of a JSON array.
func elements(raw json.RawMessage) ([]json.RawMessage, error) {
	var out []json.RawMessage
	if kind(raw) != '[' || json.Unmarshal(raw, &out) != nil {
		return nil, errors.New("must be an array")
	}
	return out, nil
}

// kind returns the first byte of a JSON value, which tells its type.
func kind(raw json.RawMessage) byte {
	if raw = bytes.TrimLeft(raw, " \t\r\n"); len(raw) > 0 {
		return raw[0]
	}
	return 0
}

// nesting returns how deep the brackets of a JSON document are nested.
func nesting(raw json.RawMessage) (int, error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	depth, deepest := 0, 0
	for {
		t, err := d.Token()
		if errors.Is(err, io.EOF) {
			return deepest, nil
		}
		if err != nil {
			return 0, err
		}
		switch t {
		case json.Delim('{'), json.Delim('['):
			depth++
			deepest = max(deepest, depth)
		case json.Delim('}'), json.Delim(']'):
			depth--
		}
	}
}
