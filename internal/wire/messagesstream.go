package wire

import (
	"encoding/json"

	"github.com/goart-dev/art"
)

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

// messageEvents names events by their types.
func messageEvents(events ...messageEvent) []Event {
	out := make([]Event, len(events))
	for i, e := range events {
		out[i] = Event{Name: e.Type, Data: e}
	}
	return out
}

// Piece implements [Stream].
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
		out = append(out, s.toolUse(call)...)
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
	return append(out, messageEvent{Type: "content_block_start", Index: s.at(), ContentBlock: block})
}

// close closes the open block.
func (s *messagesStream) close() []messageEvent {
	if s.open == "" {
		return nil
	}
	e := messageEvent{Type: "content_block_stop", Index: s.at()}
	s.open = ""
	s.index++
	return []messageEvent{e}
}

// at returns the current index.
func (s *messagesStream) at() *int {
	index := s.index
	return &index
}

// delta adds to the open block.
func (s *messagesStream) delta(delta map[string]string) messageEvent {
	return messageEvent{Type: "content_block_delta", Index: s.at(), Delta: delta}
}

// toolUse returns a whole call.
func (s *messagesStream) toolUse(call art.ToolCall) []messageEvent {
	out := s.close()
	start := ToolUseBlock{Type: "tool_use", ID: call.ID, Name: call.Name, Input: json.RawMessage("{}")}
	out = append(out, s.block("tool_use", start)...)
	out = append(out, s.delta(map[string]string{
		"type": "input_json_delta", "partial_json": string(inputOf(call.Arguments)),
	}))
	return append(out, s.close()...)
}

// End implements [Stream].
func (s *messagesStream) End(replies []*art.ChatResponse) []Event {
	r := replies[0]
	stopped, usage := s.stopped(r), newMessagesUsage(r.Usage)
	delta := map[string]any{"stop_reason": stopReason(r.Finish, stopped), "stop_sequence": orNull(stopped)}
	return messageEvents(append(s.close(),
		messageEvent{Type: "message_delta", Delta: delta, Usage: &usage},
		messageEvent{Type: "message_stop"})...)
}

// Fail implements [Stream].
func (s *messagesStream) Fail(e *Error) []Event {
	return []Event{{Name: "error", Data: MessagesError{e}}}
}
