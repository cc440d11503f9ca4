package wire

import (
	"context"
	"encoding/json"
	"slices"

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
}

// MessagesToolChoice says whether the model may call tools.
type MessagesToolChoice struct {
	Type                   string `json:"type"` // "auto", "any", "tool" or "none"
	Name                   string `json:"name"` // for "tool"
	DisableParallelToolUse bool   `json:"disable_parallel_tool_use"`
}

// choice converts a valid tool choice.
func (c *MessagesToolChoice) choice() *art.ToolChoice {
	modes := map[string]art.ToolMode{
		"auto": art.ToolAuto, "any": art.ToolRequired, "tool": art.ToolNamed, "none": art.ToolNone,
	}
	return &art.ToolChoice{Mode: modes[c.Type], Name: c.Name}
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

// DecodeMessagesRequest decodes and validates the body of a request. Its errors are like those of [DecodeChatRequest].
// counting is set for /v1/messages/count_tokens, where max_tokens is not required.
func DecodeMessagesRequest(ctx context.Context, body []byte, counting bool) (*MessagesRequest, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(body, &fields); err != nil {
		return nil, decodeError(err)
	}
	var p problemList
	messagesUnsupported.check(&p, fields)
	req := new(MessagesRequest)
	if err := json.Unmarshal(body, &req.MessagesSettings); err != nil {
		p.add(decodeError(err))
	} else {
		req.MessagesSettings.validate(&p)
		p.require(counting || req.MaxTokens != nil, "max_tokens", "is missing: it is required")
	}
	if err := req.decodeInput(ctx, &p, fields); err != nil {
		return nil, err
	}
	if err := p.err(); err != nil {
		return nil, err
	}
	return req, nil
}

// validate finds invalid settings.
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
}

// decodeInput decodes the system prompt, the messages and the tools.
func (r *MessagesRequest) decodeInput(
	ctx context.Context, p *problemList, fields map[string]json.RawMessage,
) error {
	before := len(p.listed)
	if system := plainText(p, "system", fields["system"]); system != "" {
		r.Messages = []art.Message{art.System(system)}
	}
	turns, err := decodeList(ctx, p, "messages", fields["messages"], decodeTurn)
	if err != nil {
		return err
	}
	p.require(len(turns) > 0 || len(p.listed) > before, "messages", "must not be empty")
	for _, turn := range turns {
		r.Messages = append(r.Messages, turn...)
	}
	if n := len(r.Messages); n > 0 && r.Messages[n-1].Role == art.RoleAssistant {
		p.require(false, "messages", "must not end with one of the assistant: continuing it is not supported")
	}
	r.Tools, err = decodeList(ctx, p, "tools", fields["tools"], decodeMessagesTool)
	return err
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
	h := &art.History{Messages: r.Messages, Tools: r.Tools}
	if r.ToolChoice != nil && r.ToolChoice.Type == "none" {
		h.Tools = nil
	}
	return h
}

// Options returns the sampling options of a request.
func (r *MessagesRequest) Options() *art.ChatOptions {
	opts := &art.ChatOptions{
		Temperature: r.Temperature, TopP: r.TopP, TopK: r.TopK, MaxTokens: r.MaxTokens, Stop: r.StopSequences,
		TemplateArgs: r.ChatTemplateKwargs,
	}
	if r.ToolChoice != nil {
		opts.ToolChoice = r.ToolChoice.choice()
	}
	if r.TopK != nil && *r.TopK == -1 {
		opts.TopK = new(int)
	}
	if r.Thinking != nil && r.Thinking.Type == "disabled" {
		opts.TemplateArgs = withoutThinking(r.ChatTemplateKwargs)
	}
	return opts
}

// withoutThinking adds enable_thinking to the variables of a template, unless they have it.
func withoutThinking(args json.RawMessage) json.RawMessage {
	vars := map[string]json.RawMessage{}
	_ = json.Unmarshal(args, &vars) // it is an object, null or absent
	if _, set := vars["enable_thinking"]; !set {
		vars["enable_thinking"] = json.RawMessage("false")
	}
	out, _ := json.Marshal(vars) // raw JSON always encodes
	return out
}
