package openai

import (
	"encoding/json"
	"fmt"
)

// maxElements is how many parts, and how many tool calls, a message may have. The end of a request is noticed between
// messages, so that none may take long.
const maxElements = 1024

// checkParts looks for content that is not text, which the model cannot read, and for too many parts or tool calls. It
// reports whether the message may be decoded, which finds anything else that is wrong.
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
	_ = json.Unmarshal(read.Content, &parts) // a string or null has none
	_ = json.Unmarshal(read.ToolCalls, &calls)
	p.require(len(parts) <= maxElements, path+".content", "has %d parts; at most %d are supported",
		len(parts), maxElements)
	p.require(len(calls) <= maxElements, path+".tool_calls", "has %d calls; at most %d are supported",
		len(calls), maxElements)
	for i, part := range parts[:min(len(parts), maxElements)] {
		isText := part.Type == "text" || part.Type == "refusal"
		p.require(isText, fmt.Sprintf("%s.content[%d]", path, i), "is of type %s: only text is supported", quoted(part.Type))
	}
	return len(parts) <= maxElements && len(calls) <= maxElements
}

// checkToolType refuses a tool that is not a function, such as a custom one and those that OpenAI runs itself. It
// reports whether the tool may be one; what is no object is found when it is decoded.
func checkToolType(p *problemList, path string, tool []byte) bool {
	var read struct {
		Type string `json:"type"`
	}
	if json.Unmarshal(tool, &read) != nil {
		return true
	}
	isFunction := read.Type == "function"
	p.require(isFunction, path+".type", "is %s: only \"function\" is supported", quoted(read.Type))
	return isFunction
}
