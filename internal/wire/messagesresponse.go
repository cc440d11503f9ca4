package wire

import (
	"encoding/json"
	"net/http"
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

func newMessage(id, model string, usage MessagesUsage) *MessagesResponse {
	return &MessagesResponse{
		ID: itemID("msg", id), Type: "message", Role: "assistant", Model: model, Content: []any{}, Usage: usage,
	}
}

// itemID derives the id of a part of a response from that of the reply.
func itemID(prefix, id string) string {
	return prefix + "_" + strings.TrimPrefix(strings.TrimPrefix(id, "chatcmpl-"), "resp_")
}

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

// messagesStream writes a reply as the events of Anthropic's API: one block of content open at a time, and each event
// with a name that equals its type.
type messagesStream struct {
	stopped func(*art.ChatResponse) string
	started bool
	open    string // type of the open block; "" is none
	index   int    // of the open block, or the next one
}

// NewMessagesStream returns the events of a reply. stopped returns the stop string that ended it.
func NewMessagesStream(stopped func(*art.ChatResponse) string) Stream {
	return &messagesStream{stopped: stopped}
}

// messageEvent is an event of a stream.
type messageEvent struct {
	Type         string            `json:"type"`
	Message      *MessagesResponse `json:"message,omitempty"`
	Index        *int              `json:"index,omitempty"`
	ContentBlock any               `json:"content_block,omitempty"`
	Delta        any               `json:"delta,omitempty"`
	Usage        *MessagesUsage    `json:"usage,omitempty"`
}

func messageEvents(events ...messageEvent) []Event {
	out := make([]Event, len(events))
	for i, e := range events {
		out[i] = Event{Name: e.Type, Data: e}
	}
	return out
}

func (s *messagesStream) Piece(p art.ChoicePiece) ([]Event, error) {
	var out []messageEvent
	if !s.started {
		s.started = true
		start := newMessage(p.ID, p.Model, MessagesUsage{InputTokens: len(p.PromptIDs)})
		out = append(out, messageEvent{Type: "message_start", Message: start})
	}
	if p.Reasoning != "" {
		out = append(out, s.block("thinking", ThinkingBlock{Type: "thinking"})...)
		out = append(out, s.delta(map[string]string{"type": "thinking_delta", "thinking": p.Reasoning}))
	}
	if p.Content != "" {
		out = append(out, s.block("text", TextBlock{Type: "text"})...)
		out = append(out, s.delta(map[string]string{"type": "text_delta", "text": p.Content}))
	}
	for _, call := range p.ToolCalls {
		out = append(out, s.close()...)
		start := ToolUseBlock{Type: "tool_use", ID: call.ID, Name: call.Name, Input: json.RawMessage("{}")}
		out = append(out, s.block("tool_use", start)...)
		arguments := string(inputOf(call.Arguments))
		out = append(out, s.delta(map[string]string{"type": "input_json_delta", "partial_json": arguments}))
		out = append(out, s.close()...)
	}
	return messageEvents(out...), nil
}

// block opens a block of a type unless one is open, and closes another.
func (s *messagesStream) block(kind string, block any) []messageEvent {
	if s.open == kind {
		return nil
	}
	out := s.close()
	s.open = kind
	return append(out, messageEvent{Type: "content_block_start", Index: new(s.index), ContentBlock: block})
}

func (s *messagesStream) close() []messageEvent {
	if s.open == "" {
		return nil
	}
	e := messageEvent{Type: "content_block_stop", Index: new(s.index)}
	s.open = ""
	s.index++
	return []messageEvent{e}
}

func (s *messagesStream) delta(delta map[string]string) messageEvent {
	return messageEvent{Type: "content_block_delta", Index: new(s.index), Delta: delta}
}

func (s *messagesStream) End(replies []*art.ChatResponse) []Event {
	r := replies[0]
	stopped, usage := s.stopped(r), newMessagesUsage(r.Usage)
	delta := map[string]any{"stop_reason": stopReason(r.Finish, stopped), "stop_sequence": orNull(stopped)}
	return messageEvents(append(s.close(),
		messageEvent{Type: "message_delta", Delta: delta, Usage: &usage},
		messageEvent{Type: "message_stop"})...)
}

func (s *messagesStream) Fail(e *Error) []Event {
	return []Event{{Name: "error", Data: MessagesError{e}}}
}

// MessagesError is an error in the form of Anthropic's API.
type MessagesError struct{ *Error }

// messagesErrorTypes are the types of errors that Anthropic's clients tell apart, by status.
var messagesErrorTypes = map[int]string{
	http.StatusUnauthorized:          "authentication_error",
	http.StatusForbidden:             "permission_error",
	http.StatusNotFound:              "not_found_error",
	http.StatusRequestEntityTooLarge: "request_too_large",
	http.StatusTooManyRequests:       "rate_limit_error",
	http.StatusServiceUnavailable:    "overloaded_error",
	http.StatusGatewayTimeout:        "gateway_timeout_error",
}

// MarshalJSON writes {"type": "error", "error": {"type", "message"}}.
func (e MessagesError) MarshalJSON() ([]byte, error) {
	kind := messagesErrorTypes[e.Status]
	switch {
	case kind != "":
	case e.Status >= http.StatusInternalServerError:
		kind = "api_error"
	default:
		kind = TypeInvalid
	}
	return json.Marshal(map[string]any{"type": "error", "error": map[string]string{"type": kind, "message": e.Message}})
}
