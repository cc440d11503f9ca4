package chat

import (
	"errors"
	"fmt"
	"strings"

	"github.com/goart-dev/art"
)

// The tags around one call.
const (
	deepSeekBegin     = "<｜tool▁call▁begin｜>"
	deepSeekSeparator = "<｜tool▁sep｜>"
	deepSeekEnd       = "<｜tool▁call▁end｜>"
)

// deepSeekTags are the tags of calls of which each is one of
//
//	name, deepSeekSeparator, {...}
//	function, deepSeekSeparator, name, a line break, and {...} in a fenced JSON block
var deepSeekTags = callTags{deepSeekBegin, deepSeekSeparator, deepSeekEnd, deepSeekHead, deepSeekCall}

func deepSeekHead(head string) (name, id string) { return strings.TrimSpace(head), "" }

// deepSeekCall reads what follows the separator, up to the end of the call.
func deepSeekCall(name, text, end string) (call art.ToolCall, rest string, err error) {
	fence := ""
	if !beginsJSON(text) {
		first, inner, _ := strings.Cut(text, "\n")
		if inner, ok := strings.CutPrefix(inner, "```json\n"); ok {
			if name != "function" {
				return call, "", fmt.Errorf("its type is %.40q, not function", name)
			}
			name, text, fence = withoutTokens(first), inner, "```"
		}
	}
	if call.Name = strings.TrimSpace(name); call.Name == "" {
		return call, "", errors.New("it has no name")
	}
	call.Arguments, rest, err = jsonBefore(text, fence, end)
	return call, rest, err
}
