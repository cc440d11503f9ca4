package chat

import (
	"errors"
	"fmt"
	"strings"

	"github.com/goart-dev/art"
)

// callTags are the tags of calls, each of which has some head, a separator and a body that ends with JSON.
type callTags struct {
	begin, separator, end string
	// head returns the name and the id of the function that the head of a call names.
	head func(head string) (name, id string)
	// call reads the head of a call, and its body up to the end; it returns what follows.
	call func(head, body, end string) (call art.ToolCall, rest string, err error)
}

// parse reads calls with white space between them.
func (t callTags) parse(section string, _ []art.Tool) ([]art.ToolCall, error) {
	begin, separator, end := tagIn(section, t.begin), tagIn(section, t.separator), tagIn(section, t.end)
	var calls []art.ToolCall
	for rest := strings.TrimSpace(section); rest != ""; rest = strings.TrimLeft(rest, " \t\r\n") {
		body, ok := strings.CutPrefix(rest, begin)
		if !ok {
			return nil, fmt.Errorf("expected %s, found %.40q", t.begin, withoutTokens(rest))
		}
		head, body, ok := strings.Cut(body, separator)
		if !ok || strings.Contains(head, end) {
			return nil, fmt.Errorf("call %d: it has no %s", len(calls), t.separator)
		}
		var call art.ToolCall
		var err error
		if call, rest, err = t.call(withoutTokens(head), body, end); err != nil {
			return nil, fmt.Errorf("call %d: %w", len(calls), err)
		}
		calls = append(calls, call)
	}
	if len(calls) == 0 {
		return nil, errors.New("there is no call in it")
	}
	return calls, nil
}

// tagIn returns a tag as it is in a section: as a token if there is one, else spelled out.
func tagIn(section, tag string) string {
	if strings.Contains(section, tokenByte+tag) {
		return tokenByte + tag
	}
	return tag
}

// jsonBefore reads the JSON value that a text begins with, and tags after it, with white space before each.
func jsonBefore(text string, tags ...string) (value, rest string, err error) {
	value, rest = cutJSON(strings.TrimLeft(text, " \t\r\n"))
	if !beginsJSON(text) {
		value, _, _ = strings.Cut(text, strings.Join(tags, ""))
		rest = text[len(value):]
	}
	if value, err = wholeJSON(value); err != nil {
		return "", "", err
	}
	for _, tag := range tags {
		var ok bool
		if rest, ok = strings.CutPrefix(strings.TrimLeft(rest, " \t\r\n"), tag); !ok {
			return "", "", fmt.Errorf("it is not ended by %s", withoutTokens(tag))
		}
	}
	return value, rest, nil
}

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

// The tags around one call of Kimi K2, and the one between its id and its arguments.
const (
	kimiBegin     = "<|tool_call_begin|>"
	kimiSeparator = "<|tool_call_argument_begin|>"
	kimiEnd       = "<|tool_call_end|>"
)

// kimiTags are the tags of calls that have an id such as functions.get_weather:0, which names the function and counts
// the calls of the conversation. Source: docs/tool_call_guidance.md of moonshotai/Kimi-K2-Instruct.
var kimiTags = callTags{kimiBegin, kimiSeparator, kimiEnd, kimiHead, kimiCall}

// kimiHead returns the id, and the name in it.
func kimiHead(head string) (name, id string) {
	id = strings.TrimSpace(head)
	name = strings.TrimPrefix(id, "functions.")
	if at := strings.LastIndexByte(name, ':'); at >= 0 && isNumber(name[at+1:]) && isDigits(name[at+1:]) {
		name = name[:at]
	}
	return name, id
}

// kimiCall reads an id, and JSON up to the end of the call.
func kimiCall(id, body, end string) (call art.ToolCall, rest string, err error) {
	if call.Name, call.ID = kimiHead(id); call.Name == "" {
		return call, "", errors.New("it has no name")
	}
	call.Arguments, rest, err = jsonBefore(body, end)
	return call, rest, err
}
