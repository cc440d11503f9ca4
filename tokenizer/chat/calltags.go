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
