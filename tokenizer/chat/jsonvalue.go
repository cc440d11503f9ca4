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
	var written strings.Builder
	depth, quoted, from := 0, false, 0
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == tokenByte[0], quoted && c < ' ':
			written.WriteString(text[from:i])
			written.WriteString(escapes[c])
			from = i + 1
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{', c == '[':
			depth++
		case c == '}', c == ']':
			depth--
		}
		if depth == 0 {
			written.WriteString(text[from : i+1])
			return written.String(), text[i+1:]
		}
	}
	written.WriteString(text[from:])
	return written.String(), ""
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
