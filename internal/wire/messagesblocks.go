package wire

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/goart-dev/art"
)

// inputBlock is a content block of a message of Anthropic's API.
type inputBlock struct {
	Type      string          `json:"type"`
	Text      string          `json:"text"`        // of "text"
	Thinking  string          `json:"thinking"`    // of "thinking"
	ID        string          `json:"id"`          // of "tool_use"
	Name      string          `json:"name"`        // of "tool_use"
	Input     json.RawMessage `json:"input"`       // of "tool_use"
	ToolUseID string          `json:"tool_use_id"` // of "tool_result"
	Content   json.RawMessage `json:"content"`     // of "tool_result"
}

// decodeTurn decodes a message, which is several of ours when it has the results of tools.
func decodeTurn(p *problemList, path string, raw []byte, out *[]art.Message) {
	var turn struct {
		Role    string          `json:"role"`
		Content json.RawMessage `json:"content"`
	}
	if err := json.Unmarshal(raw, &turn); err != nil {
		p.require(false, path, "is wrong: %v", err)
		return
	}
	switch blocks := decodeBlocks(p, path+".content", turn.Content); turn.Role {
	case "user":
		*out = userTurn(p, path, blocks)
	case "assistant":
		*out = []art.Message{assistantTurn(p, path, blocks)}
	case "system":
		*out = []art.Message{art.System(joinedText(p, path+".content", blocks))}
	default:
		p.require(false, path+".role", "is %s: it must be \"user\", \"assistant\" or \"system\"", Quote(turn.Role))
	}
}

// decodeBlocks reads a list of blocks. A string is one block of text.
func decodeBlocks(p *problemList, path string, raw json.RawMessage) []inputBlock {
	var text string
	if json.Unmarshal(raw, &text) == nil && len(raw) > 0 && raw[0] == '"' {
		return []inputBlock{{Type: "text", Text: text}}
	}
	var blocks []inputBlock
	if err := json.Unmarshal(raw, &blocks); err != nil {
		p.require(false, path, "must be a string or a list of blocks")
		return nil
	}
	if len(blocks) > maxElements {
		p.require(false, path, "has %d blocks; at most %d are supported", len(blocks), maxElements)
		return nil
	}
	return blocks
}

// userTurn converts what a user says, and the results of tools, in their order.
func userTurn(p *problemList, path string, blocks []inputBlock) []art.Message {
	p.require(len(blocks) > 0, path+".content", "must not be empty")
	var out []art.Message
	var texts []string // since the last result
	flush := func() {
		if len(texts) > 0 {
			out, texts = append(out, art.User(strings.Join(texts, ""))), nil
		}
	}
	for i, b := range blocks {
		at := fmt.Sprintf("%s.content[%d]", path, i)
		if b.Type != "tool_result" {
			p.require(b.Type == "text", at, "is of type %s: only text and tool_result are supported", Quote(b.Type))
			texts = append(texts, b.Text)
			continue
		}
		flush()
		p.require(b.ToolUseID != "", at+".tool_use_id", "must not be empty")
		out = append(out, art.ToolResult(b.ToolUseID, plainText(p, at+".content", b.Content)))
	}
	flush()
	return out
}

// assistantTurn converts what an assistant said.
func assistantTurn(p *problemList, path string, blocks []inputBlock) art.Message {
	m := art.Message{Role: art.RoleAssistant}
	var text, thinking strings.Builder
	for i, b := range blocks {
		at := fmt.Sprintf("%s.content[%d]", path, i)
		switch b.Type {
		case "text":
			text.WriteString(b.Text)
		case "thinking":
			thinking.WriteString(b.Thinking)
		case "tool_use":
			p.require(b.ID != "" && b.Name != "", at, "must have an id and a name")
			m.ToolCalls = append(m.ToolCalls, art.ToolCall{ID: b.ID, Name: b.Name, Arguments: argumentsOf(b.Input)})
		default:
			p.require(false, at, "is of type %s: only text, thinking and tool_use are supported", Quote(b.Type))
		}
	}
	m.Content, m.Reasoning = text.String(), thinking.String()
	return m
}

// plainText reads a text, or a list of text blocks, which are joined. Absent and null are "".
func plainText(p *problemList, path string, raw json.RawMessage) string {
	if len(raw) == 0 || string(raw) == "null" {
		return ""
	}
	return joinedText(p, path, decodeBlocks(p, path, raw))
}

// joinedText joins blocks of text.
func joinedText(p *problemList, path string, blocks []inputBlock) string {
	var text strings.Builder
	for i, b := range blocks {
		p.require(b.Type == "text", fmt.Sprintf("%s[%d]", path, i), "is of type %s: only text is supported", Quote(b.Type))
		text.WriteString(b.Text)
	}
	return text.String()
}

// rawArguments is the key of the input of a tool_use whose arguments, as the model wrote them, are no JSON object: the
// API has no other place for them. A client that sends the block back restores them.
const rawArguments = "_raw"

// inputOf returns the arguments of a call as the JSON object that the API wants.
func inputOf(arguments string) json.RawMessage {
	var object map[string]json.RawMessage
	if json.Unmarshal([]byte(arguments), &object) == nil && object != nil {
		return json.RawMessage(arguments)
	}
	if strings.TrimSpace(arguments) == "" {
		return json.RawMessage("{}")
	}
	wrapped, _ := json.Marshal(map[string]string{rawArguments: arguments}) // strings always encode
	return wrapped
}

// argumentsOf is the inverse of inputOf.
func argumentsOf(input json.RawMessage) string {
	var object map[string]json.RawMessage
	var text string
	if json.Unmarshal(input, &object) == nil && len(object) == 1 && json.Unmarshal(object[rawArguments], &text) == nil {
		return text
	}
	var out bytes.Buffer
	if len(input) == 0 || json.Compact(&out, input) != nil {
		return "{}"
	}
	return out.String()
}
