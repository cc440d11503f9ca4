package openai

import (
	"encoding/json"
	"fmt"
)

// checkParts looks for content that is not text, which the model cannot read. Anything else that is wrong with the
// messages is found when they are decoded.
func checkParts(messages json.RawMessage) []*Error {
	var contents []struct {
		Content json.RawMessage `json:"content"`
	}
	if json.Unmarshal(messages, &contents) != nil {
		return nil
	}
	var problems []*Error
	for i, m := range contents {
		var parts []struct {
			Type string `json:"type"`
		}
		if json.Unmarshal(m.Content, &parts) != nil {
			continue // a string or null
		}
		for j, part := range parts {
			if part.Type != "text" && part.Type != "refusal" {
				field := fmt.Sprintf("messages[%d].content[%d]", i, j)
				problems = append(problems, fieldError(field, "is of type %q: only text is supported", part.Type))
			}
		}
	}
	return problems
}

// checkToolTypes looks for tools that are not functions, such as custom ones and those that OpenAI runs itself.
func checkToolTypes(tools json.RawMessage) []*Error {
	var types []struct {
		Type string `json:"type"`
	}
	if json.Unmarshal(tools, &types) != nil {
		return nil
	}
	var problems []*Error
	for i, tool := range types {
		if tool.Type != "function" {
			problems = append(problems, fieldError(fmt.Sprintf("tools[%d].type", i), "is %q: only \"function\" is supported", tool.Type))
		}
	}
	return problems
}
