package chat

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// cutJSON cuts the JSON object or array at the beginning of a text from the rest; any other value is taken to be the
// whole text. The value is what the model wrote, except that control characters in strings, such as line breaks, are
// escaped, as JSON requires, and tags are spelled out. It may be invalid.
func cutJSON(text string) (value, rest string) {
	if !strings.HasPrefix(text, "{") && !strings.HasPrefix(text, "[") {
		return withoutTokens(text), ""
	}
	c := jsonCopier{copying: true}
	written, n := c.add([]byte(text))
	return string(written), text[n:]
}

// jsonCopier copies an object or an array as cutJSON writes it, from a text that grows.
type jsonCopier struct {
	copying         bool // it has not ended
	depth           int
	quoted, escaped bool
}

// add takes the next text, and returns what to write and how much of the text belongs to the value.
func (c *jsonCopier) add(text []byte) (written []byte, n int) {
	from := 0
	for i, b := range text {
		switch {
		case c.escaped:
			c.escaped = false
		case b == tokenByte[0], c.quoted && b < ' ':
			written = append(append(written, text[from:i]...), escapes[b]...)
			from = i + 1
		default:
			c.scan(b)
		}
		if c.depth == 0 {
			c.copying = false
			return append(written, text[from:i+1]...), i + 1
		}
	}
	return append(written, text[from:]...), len(text)
}

// scan keeps track of strings and of depth.
func (c *jsonCopier) scan(b byte) {
	switch {
	case c.quoted && b == '\\':
		c.escaped = true
	case b == '"':
		c.quoted = !c.quoted
	case c.quoted:
	case b == '{', b == '[':
		c.depth++
	case b == '}', b == ']':
		c.depth--
	}
}

// beginsJSON reports whether a text begins with an object or an array, after white space.
func beginsJSON(text string) bool {
	text = strings.TrimLeft(text, " \t\r\n")
	return strings.HasPrefix(text, "{") || strings.HasPrefix(text, "[")
}

// escapes are the JSON escapes of control characters.
var escapes = func() map[byte]string {
	out := map[byte]string{'\n': `\n`, '\r': `\r`, '\t': `\t`}
	for c := range byte(' ') {
		if out[c] == "" {
			out[c] = fmt.Sprintf(`\u%04x`, c)
		}
	}
	return out
}()

// wholeJSON returns the JSON value of a text that has nothing else.
func wholeJSON(text string) (string, error) {
	value, rest := cutJSON(strings.TrimSpace(text))
	if rest != "" || !json.Valid([]byte(value)) {
		return "", fmt.Errorf("its arguments are not JSON: %.80q", withoutTokens(strings.TrimSpace(text)))
	}
	return value, nil
}

// jsonObjects reads the members of the JSON objects in a text that has nothing else: one or several, alone or in lists,
// with white space, commas or semicolons between them.
func jsonObjects(text string) ([]map[string]json.RawMessage, error) {
	var out []map[string]json.RawMessage
	for rest := strings.TrimSpace(text); rest != "" || len(out) == 0; {
		value, after := cutJSON(rest)
		objects, err := objectsOf(value)
		if err != nil {
			return nil, err
		}
		out = append(out, objects...)
		rest = strings.TrimLeft(after, " \t\r\n")
		if rest != "" && (rest[0] == ',' || rest[0] == ';') {
			rest = strings.TrimLeft(rest[1:], " \t\r\n")
		}
	}
	return out, nil
}

// objectsOf reads an object, or a list of them.
func objectsOf(value string) (out []map[string]json.RawMessage, err error) {
	if strings.HasPrefix(value, "[") {
		if err := json.Unmarshal([]byte(value), &out); err != nil {
			return nil, err
		}
		if len(out) == 0 {
			return nil, errors.New("the array has no call")
		}
		return out, nil
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal([]byte(value), &members); err != nil {
		return nil, err
	}
	if members == nil {
		return nil, errors.New("it is null, not an object")
	}
	return append(out, members), nil
}
