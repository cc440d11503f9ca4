package chat

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/goart-dev/art"
)

// schemaOf returns the JSON types that the parameters of a tool may have, by their names.
func schemaOf(tools []art.Tool, name string) map[string][]string {
	at := slices.IndexFunc(tools, func(t art.Tool) bool { return t.Name == name })
	if at < 0 {
		return nil
	}
	var schema struct {
		Properties map[string]struct {
			Type json.RawMessage `json:"type"`
		} `json:"properties"`
	}
	if err := json.Unmarshal(tools[at].Parameters, &schema); err != nil {
		return nil // then the types are unknown
	}
	out := map[string][]string{}
	for key, p := range schema.Properties {
		var one string
		var several []string
		if json.Unmarshal(p.Type, &one) == nil {
			several = []string{one}
		} else if json.Unmarshal(p.Type, &several) != nil {
			continue
		}
		out[key] = several
	}
	return out
}

// typedValue writes a value as JSON. It understands Python's literals too, because templates write them.
func typedValue(text string, types []string) (string, error) {
	if len(types) == 0 || slices.Contains(types, "string") && !slices.Contains(types, "null") {
		return quote(text), nil
	}
	plain := strings.TrimSpace(text)
	if word, ok := map[string]string{"None": "null", "True": "true", "False": "false"}[plain]; ok {
		plain = word
	}
	for _, kind := range types {
		if isType(plain, kind) {
			return plain, nil
		}
	}
	value, ok := pythonValue(plain)
	if ok && slices.ContainsFunc(types, func(kind string) bool { return isType(value, kind) }) {
		return value, nil
	}
	if slices.Contains(types, "string") {
		return quote(text), nil
	}
	return "", fmt.Errorf("%.40q is not of the type %s", text, strings.Join(types, " or "))
}

// isType reports whether a JSON text is a value of a type of JSON Schema.
func isType(text, kind string) bool {
	if !json.Valid([]byte(text)) {
		return false
	}
	switch kind {
	case "integer":
		_, err := strconv.ParseInt(text, 10, 64)
		return err == nil
	case "number":
		return text[0] == '-' || text[0] >= '0' && text[0] <= '9'
	case "boolean":
		return text == "true" || text == "false"
	case "null":
		return text == "null"
	case "array":
		return text[0] == '['
	case "object":
		return text[0] == '{'
	}
	return false
}

// quote writes a JSON string as Python does: it escapes only what must be escaped.
func quote(s string) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(s); err != nil { // strings can always be encoded
		panic("chat: " + err.Error())
	}
	return strings.NewReplacer(`\u2028`, "\u2028", `\u2029`, "\u2029").Replace(strings.TrimSuffix(b.String(), "\n"))
}
