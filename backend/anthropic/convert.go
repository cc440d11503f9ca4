package anthropic

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"

	sdk "github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/packages/param"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/hosted"
)

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
