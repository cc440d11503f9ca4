package art

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
)

// hasPrefix tells whether messages begin with prefix, as far as [sameMessage] can tell.
func hasPrefix(messages, prefix []Message) bool {
	if len(messages) < len(prefix) {
		return false
	}
	for i := range prefix {
		if !sameMessage(&messages[i], &prefix[i]) {
			return false
		}
	}
	return true
}

// sameMessage tells whether two messages say the same. It looks at what a client that stores a message in structs of its
// own sends back: not at samples, reasoning and unknown fields, nor at the name of an assistant, which some add.
func sameMessage(a, b *Message) bool {
	return a.Role == b.Role && a.ToolCallID == b.ToolCallID &&
		(a.Name == b.Name || a.Role == RoleAssistant) &&
		a.Content == b.Content && bytes.Equal(a.media(), b.media()) &&
		sameCalls(a.ToolCalls, b.ToolCalls)
}

// sameCalls compares ids, names and arguments.
func sameCalls(a, b []ToolCall) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i].ID != b[i].ID || a[i].Name != b[i].Name || !sameArguments(a[i].Arguments, b[i].Arguments) {
			return false
		}
	}
	return true
}

// sameArguments compares as text, and as JSON for clients that decode and encode arguments.
func sameArguments(a, b string) bool {
	if a == b {
		return true
	}
	x, okX := decodeAny(a)
	y, okY := decodeAny(b)
	return okX && okY && reflect.DeepEqual(x, y)
}

// decodeAny decodes JSON text, leaving numbers as they are written.
func decodeAny(s string) (v any, ok bool) {
	if !json.Valid([]byte(s)) {
		return nil, false
	}
	d := json.NewDecoder(strings.NewReader(s))
	d.UseNumber()
	return v, d.Decode(&v) == nil
}

// toolsText renders tools so that equal texts are equal tools.
func toolsText(tools []Tool) string {
	var b strings.Builder
	for i := range tools {
		fields := []string{tools[i].Name, tools[i].Description, string(normalize(tools[i].Parameters))}
		text, _ := json.Marshal(fields) // strings always encode
		b.Write(text)
	}
	return b.String()
}
