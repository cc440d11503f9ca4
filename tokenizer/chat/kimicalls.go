package chat

import (
	"errors"
	"strings"

	"github.com/goart-dev/art"
)

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
