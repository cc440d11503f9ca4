package tokenizer

import (
	"encoding/json"
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

// parseDeepSeek reads calls, each between deepSeekBegin and deepSeekEnd. One is written as
//
//	name, deepSeekSeparator, {...}
//	function, deepSeekSeparator, name, a line break, and {...} in a fence of Markdown for json
func parseDeepSeek(section string, _ []art.Tool) ([]art.ToolCall, error) {
	begin, separator, end := tagIn(section, deepSeekBegin), tagIn(section, deepSeekSeparator), tagIn(section, deepSeekEnd)
	var calls []art.ToolCall
	for rest := strings.TrimSpace(section); rest != ""; rest = strings.TrimSpace(rest) {
		body, ok := strings.CutPrefix(rest, begin)
		if !ok {
			return nil, fmt.Errorf("there is %.40q where %s is wanted", withoutTokens(rest), deepSeekBegin)
		}
		if body, rest, ok = strings.Cut(body, end); !ok {
			return nil, fmt.Errorf("call %d is not ended by %s", len(calls), deepSeekEnd)
		}
		head, arguments, ok := strings.Cut(body, separator)
		if !ok {
			return nil, fmt.Errorf("call %d has no %s", len(calls), deepSeekSeparator)
		}
		call, err := deepSeekCall(withoutTokens(head), withoutTokens(arguments))
		if err != nil {
			return nil, fmt.Errorf("call %d: %w", len(calls), err)
		}
		calls = append(calls, call)
	}
	if len(calls) == 0 {
		return nil, errors.New("there is no call in it")
	}
	return calls, nil
}

// deepSeekCall reads what is before and behind the separator.
func deepSeekCall(name, arguments string) (art.ToolCall, error) {
	if inner, fenced, ok := strings.Cut(arguments, "\n```json\n"); ok {
		if name != "function" {
			return art.ToolCall{}, fmt.Errorf("its type is %.40q, only function is known", name)
		}
		if arguments, ok = strings.CutSuffix(fenced, "\n```"); !ok {
			return art.ToolCall{}, errors.New("the fence around its arguments is not ended")
		}
		name = inner
	}
	name, arguments = strings.TrimSpace(name), strings.TrimSpace(arguments)
	if name == "" {
		return art.ToolCall{}, errors.New("it has no name")
	}
	if !json.Valid([]byte(arguments)) {
		return art.ToolCall{}, fmt.Errorf("its arguments are not JSON: %.80q", arguments)
	}
	return art.ToolCall{Name: name, Arguments: arguments}, nil
}

// tagIn returns a tag as it stands in a section: a token where there is one, or its characters.
func tagIn(section, tag string) string {
	if strings.Contains(section, tokenByte+tag) {
		return tokenByte + tag
	}
	return tag
}
