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

// parseDeepSeek reads calls, each between deepSeekBegin and deepSeekEnd. A call is one of
//
//	name, deepSeekSeparator, {...}
//	function, deepSeekSeparator, name, a line break, and {...} in a fenced JSON block
func parseDeepSeek(section string, _ []art.Tool) ([]art.ToolCall, error) {
	begin, separator, end := tagIn(section, deepSeekBegin), tagIn(section, deepSeekSeparator), tagIn(section, deepSeekEnd)
	var calls []art.ToolCall
	for rest := strings.TrimSpace(section); rest != ""; rest = strings.TrimLeft(rest, " \t\r\n") {
		body, ok := strings.CutPrefix(rest, begin)
		if !ok {
			return nil, fmt.Errorf("expected %s, found %.40q", deepSeekBegin, withoutTokens(rest))
		}
		head, body, ok := strings.Cut(body, separator)
		if !ok || strings.Contains(head, end) {
			return nil, fmt.Errorf("call %d: it has no %s", len(calls), deepSeekSeparator)
		}
		var call art.ToolCall
		var err error
		if call, rest, err = deepSeekCall(withoutTokens(head), body, end); err != nil {
			return nil, fmt.Errorf("call %d: %w", len(calls), err)
		}
		calls = append(calls, call)
	}
	if len(calls) == 0 {
		return nil, errors.New("there is no call in it")
	}
	return calls, nil
}

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
	arguments, rest := cutJSON(strings.TrimLeft(text, " \t\r\n"))
	if !beginsJSON(text) {
		arguments, _, _ = strings.Cut(text, fence+end)
		rest = text[len(arguments):]
	}
	if call.Arguments, err = wholeJSON(arguments); err != nil {
		return call, "", err
	}
	for _, tag := range []string{fence, end} {
		var ok bool
		if rest, ok = strings.CutPrefix(strings.TrimLeft(rest, " \t\r\n"), tag); !ok {
			return call, "", fmt.Errorf("it is not ended by %s", withoutTokens(tag))
		}
	}
	return call, rest, nil
}

// tagIn returns a tag as it is in a section: as a token if there is one, else spelled out.
func tagIn(section, tag string) string {
	if strings.Contains(section, tokenByte+tag) {
		return tokenByte + tag
	}
	return tag
}
