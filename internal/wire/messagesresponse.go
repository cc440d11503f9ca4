package wire

import (
	"encoding/json"
	"strings"

	"github.com/goart-dev/art"
)

// MessagesResponse is the body of a response of /v1/messages.
type MessagesResponse struct {
	ID           string        `json:"id"`
	Type         string        `json:"type"`          // "message"
	Role         string        `json:"role"`          // "assistant"
	Model        string        `json:"model"`         // name@step
	Content      []any         `json:"content"`       // of the Block types
	StopReason   *string       `json:"stop_reason"`   // null until the reply is complete
	StopSequence *string       `json:"stop_sequence"` // the stop string that ended the reply
	Usage        MessagesUsage `json:"usage"`
}

// MessagesUsage counts tokens. InputTokens does not count those that were found in the KV cache.
type MessagesUsage struct {
	InputTokens              int `json:"input_tokens"`
	CacheCreationInputTokens int `json:"cache_creation_input_tokens"` // always 0
	CacheReadInputTokens     int `json:"cache_read_input_tokens"`
	OutputTokens             int `json:"output_tokens"`
}

// TextBlock is text of a reply.
type TextBlock struct {
	Type string `json:"type"` // "text"
	Text string `json:"text"`
}

// ThinkingBlock is the reasoning of a reply. It is not signed.
type ThinkingBlock struct {
	Type      string `json:"type"` // "thinking"
	Thinking  string `json:"thinking"`
	Signature string `json:"signature"`
}

// ToolUseBlock is a tool call of a reply.
type ToolUseBlock struct {
	Type  string          `json:"type"` // "tool_use"
	ID    string          `json:"id"`
	Name  string          `json:"name"`
	Input json.RawMessage `json:"input"`
}

// NewMessagesResponse converts a reply. stopped is the stop string that ended it, "" when none did.
func NewMessagesResponse(reply *art.ChatResponse, stopped string) *MessagesResponse {
	r := newMessage(reply.ID, reply.Model, newMessagesUsage(reply.Usage))
	m := &reply.Message
	if m.Reasoning != "" {
		r.Content = append(r.Content, ThinkingBlock{Type: "thinking", Thinking: m.Reasoning})
	}
	if m.Content != "" {
		r.Content = append(r.Content, TextBlock{Type: "text", Text: m.Content})
	}
	for _, call := range m.ToolCalls {
		r.Content = append(r.Content, ToolUseBlock{
			Type: "tool_use", ID: call.ID, Name: call.Name, Input: inputOf(call.Arguments),
		})
	}
	reason := stopReason(reply.Finish, stopped)
	r.StopReason, r.StopSequence = &reason, orNull(stopped)
	return r
}

// newMessage returns a response without content.
func newMessage(id, model string, usage MessagesUsage) *MessagesResponse {
	return &MessagesResponse{
		ID: itemID("msg", id), Type: "message", Role: "assistant", Model: model, Content: []any{}, Usage: usage,
	}
}

// itemID derives the id of a part of a response from that of the reply.
func itemID(prefix, id string) string {
	return prefix + "_" + strings.TrimPrefix(strings.TrimPrefix(id, "chatcmpl-"), "resp_")
}

// newMessagesUsage converts token counts.
func newMessagesUsage(u art.Usage) MessagesUsage {
	return MessagesUsage{
		InputTokens: u.PromptTokens - u.CachedTokens, CacheReadInputTokens: u.CachedTokens,
		OutputTokens: u.CompletionTokens,
	}
}

// stopReason translates why a reply ended.
func stopReason(finish, stopped string) string {
	switch {
	case finish == art.FinishLength:
		return "max_tokens"
	case finish == art.FinishToolCalls:
		return "tool_use"
	case stopped != "":
		return "stop_sequence"
	}
	return "end_turn"
}

// MatchedStop returns the stop string that ended a reply, the first in the text of its tokens; "" when none did, or
// when the tokens are not known.
func MatchedStop(reply *art.ChatResponse, stop []string, tokens TokenBytes) string {
	sample := reply.Message.Sample
	if sample == nil || tokens == nil || reply.Finish != art.FinishStop {
		return ""
	}
	var text strings.Builder
	for _, id := range sample.IDs {
		text.Write(tokens(id))
	}
	first, matched := len(text.String()), ""
	for _, s := range stop {
		if at := strings.Index(text.String(), s); at >= 0 && at < first {
			first, matched = at, s
		}
	}
	return matched
}

// TokenCount is the body of a response of /v1/messages/count_tokens.
type TokenCount struct {
	InputTokens int `json:"input_tokens"`
}
