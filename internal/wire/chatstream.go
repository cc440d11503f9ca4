package wire

import (
	"time"

	"github.com/goart-dev/art"
)

// chatStream writes a reply as chat completion chunks: the role; reasoning, text and tool calls as they come; the
// finish reason; the usage, if it was asked for.
type chatStream struct {
	req    *ChatRequest
	tokens TokenBytes
	head   *ChatChunk // what all chunks have; nil before the first
	calls  int        // tool calls so far
}

// NewChatStream returns the events of the reply to a request. tokens is called for logprobs only.
func NewChatStream(req *ChatRequest, tokens TokenBytes) Stream {
	return &chatStream{req: req, tokens: tokens}
}

// Piece implements [Stream].
func (s *chatStream) Piece(p art.Piece) ([]Event, error) {
	var out []Event
	if s.head == nil {
		if err := s.begin(&p); err != nil {
			return nil, err
		}
		role := s.chunk(ChunkChoice{Delta: Delta{Role: art.RoleAssistant, Content: new(string)}})
		if s.req.ReturnTokenIDs {
			role.PromptTokenIDs = p.PromptIDs
		}
		out = append(out, Event{Data: role})
	}
	for _, c := range s.choices(&p) {
		out = append(out, Event{Data: s.chunk(c)})
	}
	return out, nil
}

// begin learns from the first piece what all chunks have.
func (s *chatStream) begin(p *art.Piece) error {
	wantsTokens := s.req.Logprobs || s.req.ReturnTokenIDs
	if wantsTokens && p.PromptIDs == nil {
		return noSampleError(&s.req.ChatSettings, p.Model)
	}
	s.head = &ChatChunk{ID: p.ID, Object: "chat.completion.chunk", Created: time.Now().Unix(), Model: p.Model}
	return nil
}

// chunk returns the next chunk.
func (s *chatStream) chunk(choices ...ChunkChoice) *ChatChunk {
	c := *s.head
	c.Choices = append([]ChunkChoice{}, choices...)
	return &c
}

// choices splits a piece: one kind of text in each chunk, and its tokens in the first. Tokens without text have a chunk
// only if they were asked for.
func (s *chatStream) choices(p *art.Piece) []ChunkChoice {
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
func (s *chatStream) deltas(p *art.Piece) []Delta {
	var out []Delta
	if p.Reasoning != "" {
		out = append(out, Delta{Reasoning: p.Reasoning, ReasoningContent: p.Reasoning})
	}
	if p.Content != "" {
		out = append(out, Delta{Content: &p.Content})
	}
	for _, call := range p.ToolCalls {
		first := ToolCallDelta{Index: s.calls, ID: call.ID, Type: "function", Function: FunctionDelta{Name: call.Name}}
		rest := ToolCallDelta{Index: s.calls, Function: FunctionDelta{Arguments: call.Arguments}}
		out = append(out, Delta{ToolCalls: []ToolCallDelta{first}}, Delta{ToolCalls: []ToolCallDelta{rest}})
		s.calls++
	}
	return out
}

// End implements [Stream].
func (s *chatStream) End(r *art.ChatResponse) []Event {
	out := []Event{{Data: s.chunk(ChunkChoice{FinishReason: &r.Finish})}}
	if opts := s.req.StreamOptions; opts != nil && opts.IncludeUsage {
		last := s.chunk()
		last.Usage = newUsage(r.Usage)
		out = append(out, Event{Data: last})
	}
	return append(out, Event{Data: done{}})
}

// Fail implements [Stream].
func (s *chatStream) Fail(e *Error) []Event { return []Event{{Data: e}, {Data: done{}}} }
