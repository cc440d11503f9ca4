package tokenizer

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/goart-dev/art"
)

// toolJSON describes a tool as chat templates do: OpenAI's object, with a space after each colon and comma. The keys of
// the parameters keep their order.
func toolJSON(t art.Tool) (string, error) {
	if t.Name == "" {
		return "", errors.New("it has no name")
	}
	text := `{"type": "function", "function": {"name": ` + quote(t.Name)
	if t.Description != "" {
		text += `, "description": ` + quote(t.Description)
	}
	if len(t.Parameters) > 0 {
		if !json.Valid(t.Parameters) {
			return "", fmt.Errorf("the parameters of %q are not valid JSON", t.Name)
		}
		text += `, "parameters": ` + spaced(t.Parameters)
	}
	return text + "}}", nil
}

// callJSON writes a call. Arguments stay as they are.
func callJSON(c art.ToolCall) (string, error) {
	if c.Name == "" {
		return "", errors.New("it has no name")
	}
	arguments := c.Arguments
	if arguments == "" {
		arguments = "{}"
	}
	return `{"name": ` + quote(c.Name) + `, "arguments": ` + arguments + "}", nil
}

// parseCall reads what callJSON writes. The arguments are the text of the value, whatever it is.
func parseCall(text string) (call art.ToolCall, ok bool) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal([]byte(text), &members); err != nil {
		return call, false
	}
	if err := json.Unmarshal(members["name"], &call.Name); err != nil || call.Name == "" {
		return call, false
	}
	call.Arguments = string(members["arguments"])
	return call, call.Arguments != ""
}

// quote writes a JSON string, with no more escapes than JSON asks for.
func quote(s string) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(s); err != nil { // a string can always be encoded
		panic("tokenizer: " + err.Error())
	}
	return string(bytes.TrimSuffix(b.Bytes(), []byte("\n")))
}

// spaced lays valid JSON out on one line with a space after each colon and comma.
func spaced(raw json.RawMessage) string {
	var compact bytes.Buffer
	if err := json.Compact(&compact, raw); err != nil { // the caller has checked it
		panic("tokenizer: " + err.Error())
	}
	var out []byte
	inString := false
	for i, c := range compact.Bytes() {
		out = append(out, c)
		switch {
		case c == '"' && (!inString || !escaped(compact.Bytes()[:i])):
			inString = !inString
		case !inString && (c == ':' || c == ','):
			out = append(out, ' ')
		}
	}
	return string(out)
}

// escaped reports whether what follows text is behind an odd number of backslashes.
func escaped(text []byte) bool {
	n := len(text) - len(bytes.TrimRight(text, `\`))
	return n%2 == 1
}
