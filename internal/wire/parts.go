package wire

import (
	"encoding/json"
	"fmt"
)

// maxElements limits the parts and the tool calls of a message. Cancellation is checked between messages, so that no
// message may take long.
const maxElements = 1024

// checkParts finds content parts that are not text, which is all the model can read, and too many parts or tool calls.
// It reports whether to decode the message, which finds everything else that is wrong.
func checkParts(p *problemList, path string, message []byte) bool {
	var read struct {
		Content   json.RawMessage `json:"content"`
		ToolCalls json.RawMessage `json:"tool_calls"`
	}
	var parts []struct {
		Type string `json:"type"`
	}
	var calls []struct{}
	if json.Unmarshal(message, &read) != nil {
		return true
	}
	_ = json.Unmarshal(read.Content, &parts) // fails for a string, which has no parts
	_ = json.Unmarshal(read.ToolCalls, &calls)
	p.require(len(parts) <= maxElements, path+".content", "has %d parts; at most %d are supported",
		len(parts), maxElements)
	p.require(len(calls) <= maxElements, path+".tool_calls", "has %d calls; at most %d are supported",
		len(calls), maxElements)
	for i, part := range parts[:min(len(parts), maxElements)] {
		isText := part.Type == "text" || part.Type == "refusal"
		p.require(isText, fmt.Sprintf("%s.content[%d]", path, i), "is of type %s: only text is supported", Quote(part.Type))
	}
	return len(parts) <= maxElements && len(calls) <= maxElements
}

// checkToolType refuses tools that are not functions, such as custom tools and those that OpenAI runs itself. It
// reports whether to decode the tool, which finds values that are not objects.
func checkToolType(p *problemList, path string, tool []byte) bool {
	var read struct {
		Type string `json:"type"`
	}
	if json.Unmarshal(tool, &read) != nil {
		return true
	}
	isFunction := read.Type == "function"
	p.require(isFunction, path+".type", "is %s: only \"function\" is supported", Quote(read.Type))
	return isFunction
}
