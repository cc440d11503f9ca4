package secret

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
)

// JSON returns a JSON value in which secrets are replaced as [Redact] does, with its keys in their order and its
// numbers as they are; also within texts in which there is JSON, such as arguments of tools. text is applied to texts
// and keys, after [Text]. ok is false for what is no JSON.
func JSON(data []byte, text func(string) string) (redacted []byte, ok bool) {
	if !json.Valid(data) {
		return nil, false
	}
	return rewriter(text).value(data), true
}

// rewriter is applied to texts.
type rewriter func(string) string

func (r rewriter) value(data []byte) []byte {
	data = bytes.TrimSpace(data)
	switch data[0] {
	case '{':
		return r.object(data)
	case '[':
		return r.list(data)
	case '"':
		return quote(r.text(unquote(data)))
	}
	return data
}

// text redacts a text, in which there may be JSON.
func (r rewriter) text(text string) string { return r(Text(r.embedded(text))) }

// embedded redacts the objects and lists of JSON within a text.
func (r rewriter) embedded(text string) string {
	var out strings.Builder
	budget := 16 * len(text) // bytes that may be read in vain
	for budget > 0 {
		at := strings.IndexAny(text, "{[")
		if at < 0 {
			break
		}
		out.WriteString(text[:at])
		text = text[at:]
		value, n := firstValue(text)
		if value == nil {
			out.WriteString(text[:1])
			text, budget = text[1:], budget-n
			continue
		}
		out.Write(r.value(value))
		text = text[n:]
	}
	return out.String() + text
}

// firstValue returns the value with which a text begins, and its length; nil for none, and how much of the text was
// read.
func firstValue(text string) (value json.RawMessage, n int) {
	in := json.NewDecoder(strings.NewReader(text))
	err := in.Decode(&value)
	if syntax := (*json.SyntaxError)(nil); errors.As(err, &syntax) {
		return nil, max(1, int(syntax.Offset))
	}
	if err != nil {
		return nil, len(text)
	}
	return value, int(in.InputOffset())
}

// member is a key of an object and its value.
type member struct {
	key   string
	value json.RawMessage
}

// object redacts an object. A pair such as {"name": "Authorization", "value": "..."} counts as a key and its value.
func (r rewriter) object(data []byte) []byte {
	members, pair := members(data)
	out := []byte{'{'}
	for i, m := range members {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(append(out, quote(r.text(m.key))...), ':')
		if m.key == "value" && pair != "" {
			m.key = pair
		}
		out = append(out, r.named(m.key, m.value)...)
	}
	return append(out, '}')
}

// members returns the members of an object, and the name that it gives to its value, "" for none.
func members(data []byte) (list []member, pair string) {
	in := json.NewDecoder(bytes.NewReader(data))
	_, _ = in.Token()
	for in.More() {
		key, _ := in.Token() // data is valid
		m := member{key: key.(string)}
		_ = in.Decode(&m.value)
		if (m.key == "name" || m.key == "key") && m.value[0] == '"' {
			pair = unquote(m.value)
		}
		list = append(list, m)
	}
	return list, pair
}

// named redacts the value of a key.
func (r rewriter) named(key string, value json.RawMessage) []byte {
	first := value[0]
	number := first != '"' && first != '{' && first != '['
	if isNamed(key, number) && string(value) != "null" && string(value) != `""` {
		return quote(Redacted)
	}
	return r.value(value)
}

// list redacts a list. One such as ["Authorization", "..."] counts as a key and its value.
func (r rewriter) list(data []byte) []byte {
	var all []json.RawMessage
	_ = json.Unmarshal(data, &all)
	out := []byte{'['}
	for i, v := range all {
		if i > 0 {
			out = append(out, ',')
		}
		if key := ""; i == 1 && len(all) == 2 && json.Unmarshal(all[0], &key) == nil {
			out = append(out, r.named(key, v)...)
			continue
		}
		out = append(out, r.value(v)...)
	}
	return append(out, ']')
}

func unquote(data []byte) (text string) {
	_ = json.Unmarshal(data, &text)
	return text
}

func quote(text string) []byte {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(text) // a string can be encoded
	return bytes.TrimSpace(b.Bytes())
}
