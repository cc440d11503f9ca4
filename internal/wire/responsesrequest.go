package wire

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/goart-dev/art"
)

// ResponsesRequest is the body of POST /v1/responses: the fields that are supported, as a conversation.
type ResponsesRequest struct {
	Messages []art.Message // the instructions first
	Tools    []art.Tool
	ResponsesSettings
}

// ResponsesSettings are the fields of a [ResponsesRequest] other than its lists, and what the response repeats.
type ResponsesSettings struct {
	Model             string          `json:"model"`
	Instructions      *string         `json:"instructions"`
	MaxOutputTokens   *int            `json:"max_output_tokens"`
	Temperature       *float64        `json:"temperature"`
	TopP              *float64        `json:"top_p"`
	TopK              *int            `json:"top_k"` // vLLM's
	TopLogprobs       int             `json:"top_logprobs"`
	ToolChoice        ToolChoice      `json:"tool_choice"`
	ParallelToolCalls *bool           `json:"parallel_tool_calls"`
	Include           []string        `json:"include"`
	Stream            bool            `json:"stream"`
	Metadata          json.RawMessage `json:"metadata"`
	WireTools         json.RawMessage `json:"tools"`
	Text              *ResponsesText  `json:"text"`

	ChatTemplateKwargs json.RawMessage `json:"chat_template_kwargs"`
}

// ResponsesText says how the text of the reply is restricted.
type ResponsesText struct {
	Format    *ResponsesFormat `json:"format"`
	Verbosity string           `json:"verbosity"` // "medium" or ""
}

// ResponsesFormat is a [ResponseFormat] whose schema is not an object of its own.
type ResponsesFormat struct {
	Type string `json:"type"`
	JSONSchemaFormat
}

// format returns the format in the form of chat completions; nil if there is none.
func (t *ResponsesText) format() *ResponseFormat {
	if t == nil || t.Format == nil {
		return nil
	}
	return &ResponseFormat{Type: t.Format.Type, JSONSchema: &t.Format.JSONSchemaFormat}
}

// responsesUnsupported are the fields of /v1/responses that would change the reply.
var responsesUnsupported = fieldTable{
	"background":           {"false"},
	"context_management":   nil,
	"conversation":         nil,
	"frequency_penalty":    {"0"},
	"max_tool_calls":       nil,
	"min_p":                {"0"},
	"parallel_tool_calls":  {"true"},
	"presence_penalty":     {"0"},
	"previous_response_id": nil,
	"prompt":               nil,
	"reasoning":            {"{}", `{"summary":"auto"}`},
	"repetition_penalty":   {"1"},
	"stop":                 nil,
	"truncation":           {`"disabled"`},

	"include_stop_str_in_output": {"false"},
}

// logprobsIncluded is the value of "include" that asks for logprobs.
const logprobsIncluded = "message.output_text.logprobs"

// DecodeResponsesRequest decodes and validates the body of a request. Its errors are like those of [DecodeChatRequest].
func DecodeResponsesRequest(ctx context.Context, body []byte) (*ResponsesRequest, error) {
	var p problemList
	req := new(ResponsesRequest)
	fields, err := decodeFields(&p, body, &req.ResponsesSettings, responsesUnsupported)
	if err != nil {
		return nil, err
	}
	var c conversation
	if req.Instructions != nil && *req.Instructions != "" {
		c.add(art.System(*req.Instructions))
	}
	before, input := len(p.listed), fields["input"]
	var text string
	if json.Unmarshal(input, &text) == nil && len(input) > 0 && input[0] == '"' {
		c.add(art.User(text))
		input = nil
	}
	items, err := decodeList(ctx, &p, "input", input, decodeItem)
	if err != nil {
		return nil, err
	}
	p.require(text != "" || len(items) > 0 || len(p.listed) > before, "input", "must not be empty")
	for i := range items {
		c.addItem(&p, i, &items[i])
	}
	c.close()
	req.Messages = c.list
	if req.Tools, err = decodeList(ctx, &p, "tools", fields["tools"], decodeResponsesTool); err != nil {
		return nil, err
	}
	return req, p.err()
}

func (s *ResponsesSettings) validate(p *problemList) {
	common := ChatSettings{
		Temperature: s.Temperature, TopP: s.TopP, TopK: s.TopK, TopLogprobs: s.TopLogprobs, ToolChoice: s.ToolChoice,
		ChatTemplateKwargs: s.ChatTemplateKwargs, Logprobs: true,
	}
	common.validate(p)
	if f := s.Text.format(); f != nil {
		f.validate(p, "text.format")
	}
	p.require(s.Text == nil || s.Text.Verbosity == "" || s.Text.Verbosity == "medium",
		"text.verbosity", "is supported only as \"medium\"")
	p.require(s.TopLogprobs == 0 || s.WantsLogprobs(), "top_logprobs", "needs %q in include", logprobsIncluded)
	p.require(s.MaxOutputTokens == nil || *s.MaxOutputTokens >= 1,
		"max_output_tokens", "must be at least 1; leave it out for the rest of the context")
	for _, include := range s.Include {
		known := include == logprobsIncluded || include == "reasoning.encrypted_content" // there is none to leave out
		p.require(known, "include", "has %s: only %q is supported", Quote(include), logprobsIncluded)
	}
}

// ModelName is the name of the model.
func (s *ResponsesSettings) ModelName() string { return s.Model }

// WantsLogprobs reports whether the response includes logprobs.
func (s *ResponsesSettings) WantsLogprobs() bool { return slices.Contains(s.Include, logprobsIncluded) }

// decodeResponsesTool decodes a function, whose fields are those of the tool itself.
func decodeResponsesTool(p *problemList, path string, raw []byte, tool *art.Tool) {
	if !checkToolType(p, path, raw) {
		return
	}
	var read struct {
		Name        string          `json:"name"`
		Description string          `json:"description"`
		Parameters  json.RawMessage `json:"parameters"`
	}
	if err := json.Unmarshal(raw, &read); err != nil {
		p.require(false, path, "is wrong: %v", err)
		return
	}
	p.require(read.Name != "", path+".name", "must not be empty")
	*tool = art.Tool{Name: read.Name, Description: read.Description, Parameters: read.Parameters}
}

// History returns the conversation of a request. With a tool_choice of "none" the model does not see the tools.
func (r *ResponsesRequest) History() *art.History {
	return history(r.Messages, r.Tools, r.ToolChoice != "none")
}

// Options returns the sampling options of a request.
func (r *ResponsesRequest) Options() *art.ChatOptions {
	s := ChatSettings{
		Temperature: r.Temperature, TopP: r.TopP, TopK: r.TopK, MaxTokens: r.MaxOutputTokens,
		ChatTemplateKwargs: r.ChatTemplateKwargs, TopLogprobs: r.TopLogprobs, ToolChoice: r.ToolChoice,
		ResponseFormat: r.Text.format(),
	}
	return s.Options()
}

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

func (c *conversation) add(m art.Message) {
	c.close()
	c.list = append(c.list, m)
}

func (c *conversation) close() {
	if c.open == nil {
		return
	}
	last := &c.list[len(c.list)-1]
	last.Content, last.Reasoning = c.open.content.String(), c.open.reasoning.String()
	c.open = nil
}

// assistant returns the open message of an assistant and its texts.
func (c *conversation) assistant() (*art.Message, *assistantText) {
	if c.open == nil {
		c.add(art.Message{Role: art.RoleAssistant})
		c.open = new(assistantText)
	}
	return &c.list[len(c.list)-1], c.open
}

func (c *conversation) addItem(p *problemList, i int, item *inputItem) {
	path := fmt.Sprintf("input[%d]", i)
	switch item.Type {
	case "", "message":
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
