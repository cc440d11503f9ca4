// Package anthropic is the backend of Anthropic's models, over its Go SDK. It answers and logs, for judges and
// prompted baselines:
//
//	backend, err := anthropic.Open(ctx, &anthropic.Options{MaxSpend: 5})
//	model := art.NewModel("judge", &art.ModelOptions{Base: "claude-sonnet-4-5", Frozen: true})
//	err = model.Register(ctx, backend)
//
// Package hosted describes what is sent again, how costs are counted, and what the errors are.
//
// # Requests
//
// System and developer messages, wherever they are, become the system prompt. A reply without MaxTokens gets at most
// 8192, as the API needs a number. Temperature and TopP are sent when they are not 1; the API takes
// temperatures up to 1, and its newer models only one of the two. There is no seed: replies are not reproducible.
// The thinking of a reply is its Reasoning, and is not sent back. Messages with images, arguments of calls that are
// not a JSON object, and TemplateArgs are errors.
package anthropic

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	sdk "github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"
	"github.com/anthropics/anthropic-sdk-go/packages/param"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/hosted"
)

const (
	defaultURL       = "https://api.anthropic.com"
	defaultMaxTokens = 8192
)

// Options are those of all backends of hosted models.
type Options = hosted.Options

// Open prepares the connection; nothing is sent before the first call. opts may be nil.
//
// BaseURL has no version: its default is the environment variable ANTHROPIC_BASE_URL, and then
// https://api.anthropic.com. The default of Key is ANTHROPIC_API_KEY at these two, and that of Prices [DefaultPrices]
// at the latter; other hosts have none.
func Open(_ context.Context, opts *Options) (*hosted.Backend, error) {
	about := hosted.About{
		Name: "anthropic", BaseURL: defaultURL, URLVariable: "ANTHROPIC_BASE_URL", Prices: DefaultPrices(),
		KeyVariables: map[string]string{"api.anthropic.com": "ANTHROPIC_API_KEY"},
	}
	return hosted.New(about, opts, func(c *hosted.Connection) (hosted.Service, error) {
		return &service{sdk.NewClient(clientOptions(c)...)}, nil
	})
}

// clientOptions describe a connection to the SDK. It reads no environment, does not repeat requests and has no
// time-out: package hosted does all that.
func clientOptions(c *hosted.Connection) []option.RequestOption {
	opts := []option.RequestOption{
		option.WithoutEnvironmentDefaults(), option.WithBaseURL(c.BaseURL.String() + "/"), option.WithHTTPClient(c.Client),
		option.WithMaxRetries(0), option.WithRequestTimeout(24 * time.Hour),
	}
	if c.Key != "" {
		opts = append(opts, option.WithAPIKey(c.Key))
	}
	for name, values := range c.Headers {
		for _, value := range values {
			opts = append(opts, option.WithHeaderAdd(name, value))
		}
	}
	for field, value := range c.Extra {
		if string(value) == "null" {
			opts = append(opts, option.WithJSONDel(field))
			continue
		}
		opts = append(opts, option.WithJSONSet(field, value))
	}
	return opts
}

// service implements [hosted.Service].
type service struct{ client sdk.Client }

func (s *service) Complete(ctx context.Context, model string, req *art.ChatRequest) (*hosted.Reply, error) {
	params, err := newParams(model, req)
	if err != nil {
		return nil, err
	}
	message, err := s.client.Messages.New(ctx, *params)
	if err != nil {
		return nil, failure(err)
	}
	return newReply(message), nil
}

func (s *service) Models(ctx context.Context) ([]string, error) {
	page, err := s.client.Models.List(ctx, sdk.ModelListParams{})
	if err != nil {
		return nil, failure(err)
	}
	var names []string
	for _, m := range page.Data {
		names = append(names, m.ID)
	}
	return names, nil
}

// failure converts an error that the API answered with.
func failure(err error) error {
	var answered *sdk.Error
	if !errors.As(err, &answered) {
		return err
	}
	var body struct {
		Error struct {
			Message string `json:"message"`
		} `json:"error"`
	}
	f := &hosted.Failure{Status: answered.StatusCode, Code: string(answered.Type()), Header: http.Header{}}
	if answered.Response != nil {
		f.Header = answered.Response.Header
	}
	if f.Message = answered.RawJSON(); json.Unmarshal([]byte(f.Message), &body) == nil && body.Error.Message != "" {
		f.Message = body.Error.Message
	}
	return f
}

// DefaultPrices returns list prices of Anthropic's models in US dollars, of late 2025, for prompts of up to 200,000
// tokens. Prices change: hand in your own where money matters.
func DefaultPrices() hosted.Prices {
	return hosted.Prices{
		"claude-opus-4-5":   {Prompt: 5, CachedPrompt: 0.5, Completion: 25},
		"claude-opus-4-1":   {Prompt: 15, CachedPrompt: 1.5, Completion: 75},
		"claude-sonnet-4-5": {Prompt: 3, CachedPrompt: 0.3, Completion: 15},
		"claude-haiku-4-5":  {Prompt: 1, CachedPrompt: 0.1, Completion: 5},
	}
}

func newParams(model string, req *art.ChatRequest) (*sdk.MessageNewParams, error) {
	if len(req.TemplateArgs) > 0 {
		err := fmt.Errorf("%w: Anthropic has no TemplateArgs", art.ErrUnsupported)
		return nil, &art.Error{Op: "complete", Err: err, Hint: "leave them out of the ChatOptions"}
	}
	if err := hosted.CheckSettings("Anthropic", req.Settings); err != nil {
		return nil, err
	}
	if err := hosted.TextOnly(req.Messages); err != nil {
		return nil, err
	}
	s := req.Settings
	p := &sdk.MessageNewParams{
		Model: model, MaxTokens: int64(cmp.Or(s.MaxTokens, defaultMaxTokens)), StopSequences: s.Stop,
		Tools: newTools(req.Tools),
	}
	if s.Temperature != 1 {
		p.Temperature = param.NewOpt(s.Temperature)
	}
	if s.TopP != 1 {
		p.TopP = param.NewOpt(s.TopP)
	}
	if s.TopK > 0 {
		p.TopK = param.NewOpt(int64(s.TopK))
	}
	for i := range req.Messages {
		if err := addMessage(p, &req.Messages[i], i); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// addMessage adds the i-th message to the system prompt or to the conversation. The API joins messages of one role.
func addMessage(p *sdk.MessageNewParams, m *art.Message, i int) error {
	switch m.Role {
	case art.RoleSystem, art.RoleDeveloper:
		if m.Content != "" {
			p.System = append(p.System, sdk.TextBlockParam{Text: m.Content})
		}
	case art.RoleTool:
		addBlocks(p, sdk.MessageParamRoleUser, sdk.NewToolResultBlock(m.ToolCallID, m.Content, false))
	case art.RoleAssistant:
		blocks, err := replyBlocks(m, i)
		if err != nil {
			return err
		}
		addBlocks(p, sdk.MessageParamRoleAssistant, blocks...)
	default:
		addBlocks(p, sdk.MessageParamRoleUser, sdk.NewTextBlock(m.Content))
	}
	return nil
}

// addBlocks adds to the last message if it is of the same role: the results of parallel calls are one message.
func addBlocks(p *sdk.MessageNewParams, role sdk.MessageParamRole, blocks ...sdk.ContentBlockParamUnion) {
	if len(blocks) == 0 {
		return
	}
	if n := len(p.Messages); n > 0 && p.Messages[n-1].Role == role {
		p.Messages[n-1].Content = append(p.Messages[n-1].Content, blocks...)
		return
	}
	p.Messages = append(p.Messages, sdk.MessageParam{Role: role, Content: blocks})
}

// replyBlocks converts a message of the assistant. Empty texts are refused by the API.
func replyBlocks(m *art.Message, i int) ([]sdk.ContentBlockParamUnion, error) {
	var blocks []sdk.ContentBlockParamUnion
	if m.Content != "" {
		blocks = append(blocks, sdk.NewTextBlock(m.Content))
	}
	for k, call := range m.ToolCalls {
		arguments := bytes.TrimSpace([]byte(cmp.Or(call.Arguments, "{}")))
		if !json.Valid(arguments) || arguments[0] != '{' {
			err := fmt.Errorf("%w: messages[%d].tool_calls[%d]: the arguments are not a JSON object", art.ErrInvalid, i, k)
			return nil, &art.Error{Op: "complete", Err: err, Hint: "leave the call out, or correct its arguments"}
		}
		blocks = append(blocks, sdk.NewToolUseBlock(call.ID, json.RawMessage(arguments), call.Name))
	}
	return blocks, nil
}

// newTools converts tools. Schemas are sent as they are, in the order of their keys.
func newTools(tools []art.Tool) []sdk.ToolUnionParam {
	var out []sdk.ToolUnionParam
	for _, tool := range tools {
		schema := tool.Parameters
		if len(schema) == 0 {
			schema = json.RawMessage(`{"type":"object"}`)
		}
		t := sdk.ToolUnionParamOfTool(param.Override[sdk.ToolInputSchemaParam](schema), tool.Name)
		if tool.Description != "" {
			t.OfTool.Description = param.NewOpt(tool.Description)
		}
		out = append(out, t)
	}
	return out
}

// finishes are art's names of the reasons to stop. Others keep Anthropic's.
var finishes = map[sdk.StopReason]string{
	sdk.StopReasonEndTurn: art.FinishStop, sdk.StopReasonStopSequence: art.FinishStop,
	sdk.StopReasonMaxTokens: art.FinishLength, sdk.StopReasonModelContextWindowExceeded: art.FinishLength,
	sdk.StopReasonToolUse: art.FinishToolCalls,
}

// newReply converts an answer. Its prompt tokens include those of the cache.
func newReply(m *sdk.Message) *hosted.Reply {
	message := art.Message{Role: art.RoleAssistant}
	for _, block := range m.Content {
		switch block.Type {
		case "text":
			message.Content += block.Text
		case "thinking":
			message.Reasoning += block.Thinking
		case "tool_use":
			call := art.ToolCall{ID: block.ID, Name: block.Name, Arguments: string(block.Input)}
			message.ToolCalls = append(message.ToolCalls, call)
		}
	}
	reply := &hosted.Reply{ID: m.ID, Message: message, Finish: cmp.Or(finishes[m.StopReason], string(m.StopReason))}
	u := m.Usage
	if u.JSON.InputTokens.Valid() && u.JSON.OutputTokens.Valid() {
		reply.Usage = &art.Usage{
			PromptTokens:     int(u.InputTokens + u.CacheReadInputTokens + u.CacheCreationInputTokens),
			CachedTokens:     int(u.CacheReadInputTokens),
			CompletionTokens: int(u.OutputTokens),
		}
	}
	return reply
}
