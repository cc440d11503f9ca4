package wire

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/goart-dev/art"
)

// MessagesRequest is the body of POST /v1/messages, Anthropic's API: the fields that are supported, as a conversation.
type MessagesRequest struct {
	Messages []art.Message // the system prompt first
	Tools    []art.Tool
	MessagesSettings
}

// MessagesSettings are the fields of a [MessagesRequest] other than its lists.
type MessagesSettings struct {
	Model         string              `json:"model"`
	MaxTokens     *int                `json:"max_tokens"` // required, but not to count tokens
	ToolChoice    *MessagesToolChoice `json:"tool_choice"`
	Temperature   *float64            `json:"temperature"`
	TopP          *float64            `json:"top_p"`
	TopK          *int                `json:"top_k"`
	StopSequences []string            `json:"stop_sequences"`
	Stream        bool                `json:"stream"`
	Thinking      *Thinking           `json:"thinking"`

	ChatTemplateKwargs json.RawMessage `json:"chat_template_kwargs"` // vLLM's

	counting bool
}

// MessagesToolChoice says whether the model may call tools.
type MessagesToolChoice struct {
	Type                   string `json:"type"` // "auto", "any", "tool" or "none"
	Name                   string `json:"name"` // for "tool"
	DisableParallelToolUse bool   `json:"disable_parallel_tool_use"`
}

// Thinking switches reasoning on or off, by the variable enable_thinking of chat templates that know it.
type Thinking struct {
	Type string `json:"type"` // "disabled" or "adaptive", which is the template's default
}

// messagesUnsupported are the fields of /v1/messages that would change the reply.
var messagesUnsupported = fieldTable{
	"container":          nil,
	"context_management": nil,
	"mcp_servers":        {"[]"},
	"output_config":      {"{}"},
	"output_format":      nil,
}

// ModelName is the name of the model.
func (s *MessagesSettings) ModelName() string { return s.Model }

// DecodeMessagesRequest decodes and validates the body of a request. Its errors are like those of [DecodeChatRequest].
func DecodeMessagesRequest(ctx context.Context, body []byte) (*MessagesRequest, error) {
	return decodeMessagesRequest(ctx, body, false)
}

// DecodeCountRequest decodes that of a request to /v1/messages/count_tokens, where max_tokens is not required.
func DecodeCountRequest(ctx context.Context, body []byte) (*MessagesRequest, error) {
	return decodeMessagesRequest(ctx, body, true)
}

func decodeMessagesRequest(ctx context.Context, body []byte, counting bool) (*MessagesRequest, error) {
	var p problemList
	req := &MessagesRequest{MessagesSettings: MessagesSettings{counting: counting}}
	fields, err := decodeFields(&p, body, &req.MessagesSettings, messagesUnsupported)
	if err != nil {
		return nil, err
	}
	before := len(p.listed)
	if system := plainText(&p, "system", fields["system"]); system != "" {
		req.Messages = []art.Message{art.System(system)}
	}
	turns, err := decodeList(ctx, &p, "messages", fields["messages"], decodeTurn)
	if err != nil {
		return nil, err
	}
	p.require(len(turns) > 0 || len(p.listed) > before, "messages", "must not be empty")
	req.Messages = append(req.Messages, slices.Concat(turns...)...)
	if n := len(req.Messages); n > 0 && req.Messages[n-1].Role == art.RoleAssistant {
		p.require(false, "messages", "must not end with one of the assistant: continuing it is not supported")
	}
	if req.Tools, err = decodeList(ctx, &p, "tools", fields["tools"], decodeMessagesTool); err != nil {
		return nil, err
	}
	return req, p.err()
}

func (s *MessagesSettings) validate(p *problemList) {
	common := ChatSettings{Temperature: s.Temperature, TopP: s.TopP, TopK: s.TopK, MaxTokens: s.MaxTokens}
	common.validateSampling(p)
	p.require(len(s.StopSequences) <= maxStop, "stop_sequences", "has %d strings; at most %d are supported",
		len(s.StopSequences), maxStop)
	p.require(!slices.Contains(s.StopSequences, ""), "stop_sequences", "must not contain an empty string")
	p.require(isObject(s.ChatTemplateKwargs),
		"chat_template_kwargs", "must be an object of variables for the chat template")
	if c := s.ToolChoice; c != nil {
		p.require(slices.Contains([]string{"auto", "any", "tool", "none"}, c.Type), "tool_choice",
			`must be of type "auto", "any", "tool" or "none"`)
		p.require((c.Type == "tool") == (c.Name != ""), "tool_choice.name", `goes with the type "tool", which needs it`)
		p.require(!c.DisableParallelToolUse || c.Type == "tool", "tool_choice.disable_parallel_tool_use",
			`is supported only with the type "tool"`)
	}
	if t := s.Thinking; t != nil {
		p.require(t.Type == "disabled" || t.Type == "adaptive", "thinking",
			"must be of type \"disabled\" or \"adaptive\": a budget is not supported")
	}
	p.require(s.counting || s.MaxTokens != nil, "max_tokens", "is missing: it is required")
}

// decodeMessagesTool decodes a tool. Those that Anthropic runs itself have a type other than "custom".
func decodeMessagesTool(p *problemList, path string, raw []byte, tool *art.Tool) {
	var read struct {
		Type        string          `json:"type"`
		Name        string          `json:"name"`
		Description string          `json:"description"`
		InputSchema json.RawMessage `json:"input_schema"`
	}
	if err := json.Unmarshal(raw, &read); err != nil {
		p.require(false, path, "is wrong: %v", err)
		return
	}
	p.require(read.Type == "" || read.Type == "custom", path+".type",
		"is %s: only tools of the client are supported", Quote(read.Type))
	p.require(read.Name != "", path+".name", "must not be empty")
	*tool = art.Tool{Name: read.Name, Description: read.Description, Parameters: read.InputSchema}
}

// History returns the conversation of a request. With a tool_choice of "none" the model does not see the tools.
func (r *MessagesRequest) History() *art.History {
	return history(r.Messages, r.Tools, r.ToolChoice == nil || r.ToolChoice.Type != "none")
}

// Options returns the sampling options of a request.
func (r *MessagesRequest) Options() *art.ChatOptions {
	opts := &art.ChatOptions{
		Temperature: r.Temperature, TopP: r.TopP, TopK: r.TopK, MaxTokens: r.MaxTokens, Stop: r.StopSequences,
		TemplateArgs: r.ChatTemplateKwargs,
	}
	if r.ToolChoice != nil {
		modes := map[string]art.ToolMode{
			"auto": art.ToolAuto, "any": art.ToolRequired, "tool": art.ToolNamed, "none": art.ToolNone,
		}
		opts.ToolChoice = &art.ToolChoice{Mode: modes[r.ToolChoice.Type], Name: r.ToolChoice.Name}
	}
	if r.TopK != nil && *r.TopK == -1 {
		opts.TopK = new(int)
	}
	if r.Thinking != nil && r.Thinking.Type == "disabled" {
		vars := map[string]json.RawMessage{}
		_ = json.Unmarshal(r.ChatTemplateKwargs, &vars) // it is an object, null or absent
		if _, set := vars["enable_thinking"]; !set {
			vars["enable_thinking"] = json.RawMessage("false")
		}
		opts.TemplateArgs, _ = json.Marshal(vars) // raw JSON always encodes
	}
	return opts
}

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
