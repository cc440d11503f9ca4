// Package wiretest builds request bodies for the tests of internal/wire and backend/server.
package wiretest

import (
	"fmt"
	"strings"
)

// Hello returns a chat completions request with one message and further fields: `, "n": 2`.
func Hello(fields string) string {
	return `{"model": "player", "messages": [{"role": "user", "content": "Hello"}]` + fields + `}`
}

// WithMessage returns a chat completions request whose only message has these fields.
func WithMessage(fields string) string {
	return `{"model": "player", "messages": [{` + fields + `}]}`
}

// List returns n JSON elements, separated by commas. A %d in element is replaced by the index.
func List(n int, element string) string {
	var b strings.Builder
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		if strings.Contains(element, "%d") {
			fmt.Fprintf(&b, element, i)
		} else {
			b.WriteString(element)
		}
	}
	return b.String()
}
