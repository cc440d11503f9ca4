package wire

import (
	"time"

	"github.com/goart-dev/art"
)

// chatStream writes replies as chat completion chunks. Each reply has the role; reasoning, text and tool calls as they
// come; the finish reason. The usage is last, if it was asked for.
type chatStream struct {
	req    *ChatRequest
	tokens TokenBytes
	head   *ChatChunk // what all chunks have; nil before the first
	begun  []bool     // by the index of the reply
	calls  []int      // tool calls so far, by the index of the reply
}

// NewChatStream returns the events of the replies to a request. tokens is called for logprobs only.
func NewChatStream(req *ChatRequest, tokens TokenBytes) Stream {
	n := req.Choices()
	return &chatStream{req: req, tokens: tokens, begun: make([]bool, n), calls: make([]int, n)}
}

// Piece implements [Stream].
func (s *chatStream) Piece(p art.ChoicePiece) ([]Event, error) {
	var out []Event
	if !s.begun[p.Choice] {
		role, err := s.begin(&p)
		if err != nil {
			return nil, err
		}
		out = append(out, Event{Data: role})
	}
	for _, c := range s.choices(&p) {
		c.Index = p.Choice
		out = append(out, Event{Data: s.chunk(c)})
	}
	return out, nil
}

// begin returns the first chunk of a reply. The very first tells what all chunks have.
func (s *chatStream) begin(p *art.ChoicePiece) (*ChatChunk, error) {
	wantsTokens := s.req.Logprobs || s.req.ReturnTokenIDs
	if wantsTokens && p.PromptIDs == nil {
		return nil, noSampleError(&s.req.ChatSettings, p.Model)
	}
	first := s.head == nil
	if first {
		s.head = &ChatChunk{ID: p.ID, Object: "chat.completion.chunk", Created: time.Now().Unix(), Model: p.Model}
	}
	s.begun[p.Choice] = true
	role := s.chunk(ChunkChoice{Index: p.Choice, Delta: Delta{Role: art.RoleAssistant, Content: new(string)}})
	if first && s.req.ReturnTokenIDs {
		role.PromptTokenIDs = p.PromptIDs
	}
	return role, nil
}

// chunk returns the next chunk.
func (s *chatStream) chunk(choices ...ChunkChoice) *ChatChunk {
	c := *s.head
	c.Choices = append([]ChunkChoice{}, choices...)
	return &c
}

// choices splits a piece: one kind of text in each chunk, and its tokens in the first. Tokens without text have a chunk
// only if they were asked for.
func (s *chatStream) choices(p *art.ChoicePiece) []ChunkChoice {
	if p.End != nil {
		return []ChunkChoice{{FinishReason: &p.End.Finish, StopReason: s.req.stopReason(p.End)}}
	}
	var out []ChunkChoice
	for _, d := range s.deltas(p) {
		out = append(out, ChunkChoice{Delta: d})
	}
	if len(p.IDs) == 0 || !s.req.Logprobs && !s.req.ReturnTokenIDs {
		return out
	}
	if len(out) == 0 {
		out = []ChunkChoice{{}}
	}
	if s.req.Logprobs {
		out[0].Logprobs = newLogprobs(p.IDs, p.Logprobs, p.TopLogprobs, s.req.tokenTexts(s.tokens))
	}
	if s.req.ReturnTokenIDs {
		out[0].TokenIDs = p.IDs
	}
	return out
}

// deltas splits what a piece says.
func (s *chatStream) deltas(p *art.ChoicePiece) []Delta {
	var out []Delta
	if p.Reasoning != "" {
		out = append(out, Delta{Reasoning: p.Reasoning, ReasoningContent: p.Reasoning})
	}
	if p.Content != "" {
		out = append(out, Delta{Content: &p.Content})
	}
	for _, call := range p.ToolCalls {
		at := s.calls[p.Choice]
		first := ToolCallDelta{Index: at, ID: call.ID, Type: "function", Function: FunctionDelta{Name: call.Name}}
		rest := ToolCallDelta{Index: at, Function: FunctionDelta{Arguments: call.Arguments}}
		out = append(out, Delta{ToolCalls: []ToolCallDelta{first}}, Delta{ToolCalls: []ToolCallDelta{rest}})
		s.calls[p.Choice]++
	}
	return out
}

// End implements [Stream].
func (s *chatStream) End(replies []*art.ChatResponse) []Event {
	var out []Event
	if opts := s.req.StreamOptions; opts != nil && opts.IncludeUsage {
		last := s.chunk()
		last.Usage = newUsage(replies, len(replies))
		out = append(out, Event{Data: last})
	}
	return append(out, Event{Data: done{}})
}

// Fail implements [Stream].
func (s *chatStream) Fail(e *Error) []Event { return []Event{{Data: e}, {Data: done{}}} }
