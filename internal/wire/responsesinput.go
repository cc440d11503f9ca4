package wire

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/goart-dev/art"
)

// inputItem is an item of a conversation of the Responses API: a message, a call of a function, its output, or
// reasoning.
type inputItem struct {
	Type      string          `json:"type"` // "" is a message
	Role      art.Role        `json:"role"`
	Content   json.RawMessage `json:"content"`
	CallID    string          `json:"call_id"`
	Name      string          `json:"name"`
	Arguments string          `json:"arguments"`
	Output    json.RawMessage `json:"output"`
	Summary   json.RawMessage `json:"summary"`
}

// decodeItem decodes an item.
func decodeItem(p *problemList, path string, raw []byte, item *inputItem) {
	if err := json.Unmarshal(raw, item); err != nil {
		p.require(false, path, "is wrong: %v", err)
	}
}

// conversation collects items. What an assistant says in a row is one message: its reasoning, its text and its calls.
type conversation struct {
	list []art.Message
	open *assistantText // of the last message, while items may still be added to it
}

// assistantText is the text of an open message.
type assistantText struct{ content, reasoning strings.Builder }

// add adds a message.
func (c *conversation) add(m art.Message) {
	c.close()
	c.list = append(c.list, m)
}

// close ends the open message.
func (c *conversation) close() {
	if c.open == nil {
		return
	}
	last := &c.list[len(c.list)-1]
	last.Content, last.Reasoning = c.open.content.String(), c.open.reasoning.String()
	c.open = nil
}

// messages returns what was collected.
func (c *conversation) messages() []art.Message {
	c.close()
	return c.list
}

// assistant returns the open message of an assistant and its texts.
func (c *conversation) assistant() (*art.Message, *assistantText) {
	if c.open == nil {
		c.add(art.Message{Role: art.RoleAssistant})
		c.open = new(assistantText)
	}
	return &c.list[len(c.list)-1], c.open
}

// addItem adds item i of the input.
func (c *conversation) addItem(p *problemList, i int, item *inputItem) {
	path := fmt.Sprintf("input[%d]", i)
	switch item.Type {
	case "", "message":
		c.addMessage(p, path, item)
	case "function_call":
		p.require(item.CallID != "" && item.Name != "", path, "must have a call_id and a name")
		m, _ := c.assistant()
		m.ToolCalls = append(m.ToolCalls, art.ToolCall{ID: item.CallID, Name: item.Name, Arguments: item.Arguments})
	case "function_call_output":
		p.require(item.CallID != "", path+".call_id", "must not be empty")
		c.add(art.ToolResult(item.CallID, partsText(p, path+".output", item.Output)))
	case "reasoning":
		_, text := c.assistant()
		if reasoning := partsText(p, path+".content", item.Content); reasoning != "" {
			text.reasoning.WriteString(reasoning)
			return
		}
		text.reasoning.WriteString(partsText(p, path+".summary", item.Summary))
	default:
		p.require(false, path, "is of type %s, which is not supported", Quote(item.Type))
	}
}

// addMessage adds a message.
func (c *conversation) addMessage(p *problemList, path string, item *inputItem) {
	content := partsText(p, path+".content", item.Content)
	switch item.Role {
	case art.RoleAssistant:
		_, text := c.assistant()
		text.content.WriteString(content)
	case art.RoleUser, art.RoleSystem, art.RoleDeveloper:
		c.add(art.Message{Role: item.Role, Content: content})
	default:
		p.require(false, path+".role", "is %s: it must be \"user\", \"assistant\", \"system\" or \"developer\"",
			Quote(item.Role))
	}
}

// textParts are the types of parts that are text.
var textParts = map[string]bool{
	"input_text": true, "output_text": true, "text": true, "refusal": true, "summary_text": true, "reasoning_text": true,
}

// partsText reads a text, or a list of parts, which are joined. Absent and null are "".
func partsText(p *problemList, path string, raw json.RawMessage) string {
	var text *string
	if len(raw) == 0 || json.Unmarshal(raw, &text) == nil {
		if text == nil {
			return ""
		}
		return *text
	}
	var parts []struct{ Type, Text, Refusal string }
	if err := json.Unmarshal(raw, &parts); err != nil || len(parts) > maxElements {
		p.require(false, path, "must be a string or a list of at most %d parts", maxElements)
		return ""
	}
	var out strings.Builder
	for i, part := range parts {
		p.require(textParts[part.Type], fmt.Sprintf("%s[%d]", path, i), "is of type %s: only text is supported",
			Quote(part.Type))
		out.WriteString(part.Text)
		out.WriteString(part.Refusal)
	}
	return out.String()
}
