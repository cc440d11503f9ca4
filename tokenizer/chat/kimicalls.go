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
var kimiTags = callTags{kimiBegin, kimiSeparator, kimiEnd, kimiCall}

// kimiCall reads an id, and JSON up to the end of the call.
func kimiCall(id, body, end string) (call art.ToolCall, rest string, err error) {
	call.ID = strings.TrimSpace(id)
	call.Name = strings.TrimPrefix(call.ID, "functions.")
	if at := strings.LastIndexByte(call.Name, ':'); at >= 0 && isType(call.Name[at+1:], "integer") {
		call.Name = call.Name[:at]
	}
	if call.Name == "" {
		return call, "", errors.New("it has no name")
	}
	call.Arguments, rest, err = jsonBefore(body, end)
	return call, rest, err
}
