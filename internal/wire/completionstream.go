package wire

import (
	"time"
	"unicode/utf8"

	"github.com/goart-dev/art"
)

// completionStream writes a reply as the events of /v1/completions.
type completionStream struct {
	req    *CompletionRequest
	tokens TokenBytes
	head   *CompletionResponse // what all events have; nil before the first
	offset int                 // characters of the tokens so far
}

// NewCompletionStream returns the events of the reply to a request. tokens is called for logprobs only.
func NewCompletionStream(req *CompletionRequest, tokens TokenBytes) Stream {
	return &completionStream{req: req, tokens: req.tokenTexts(tokens)}
}

// NewCompletionResponse converts the reply to a request.
func NewCompletionResponse(req *CompletionRequest, reply *art.ChatResponse, tokens TokenBytes) *CompletionResponse {
	s := &completionStream{req: req, tokens: req.tokenTexts(tokens)}
	s.begin(reply.ID, reply.Model)
	whole := reply.Piece()
	choice := s.choice(whole)
	choice.FinishReason = &reply.Finish
	if req.ReturnTokenIDs {
		choice.PromptTokenIDs = whole.PromptIDs
	}
	r := s.response(choice)
	r.Usage = newUsage(reply.Usage)
	return r
}

// begin sets what all events have.
func (s *completionStream) begin(id, model string) {
	s.head = &CompletionResponse{
		ID: itemID("cmpl", id), Object: "text_completion", Created: time.Now().Unix(), Model: model,
	}
}

// response returns the next event.
func (s *completionStream) response(choices ...CompletionChoice) *CompletionResponse {
	r := *s.head
	r.Choices = append([]CompletionChoice{}, choices...)
	return &r
}

// choice converts a piece.
func (s *completionStream) choice(p art.Piece) CompletionChoice {
	choice := CompletionChoice{Text: p.Content}
	if s.req.Logprobs != nil && len(p.IDs) > 0 {
		choice.Logprobs = s.logprobs(&p)
	}
	if s.req.ReturnTokenIDs {
		choice.TokenIDs = p.IDs
	}
	return choice
}

// logprobs converts the logprobs of a piece.
func (s *completionStream) logprobs(p *art.Piece) *CompletionLogprobs {
	out := &CompletionLogprobs{}
	for i, id := range p.IDs {
		text := validText(s.tokens(id))
		out.TextOffset = append(out.TextOffset, s.offset)
		out.Tokens = append(out.Tokens, text)
		out.TokenLogprobs = append(out.TokenLogprobs, finite(p.Logprobs[i]))
		s.offset += utf8.RuneCountInString(text)
	}
	return out
}

// Piece implements [Stream]. Tokens without text have an event only if they were asked for.
func (s *completionStream) Piece(p art.Piece) ([]Event, error) {
	first := s.head == nil
	if first {
		s.begin(p.ID, p.Model)
	}
	choice := s.choice(p)
	if first && s.req.ReturnTokenIDs {
		choice.PromptTokenIDs = p.PromptIDs
	}
	if !first && choice.Text == "" && choice.Logprobs == nil && len(choice.TokenIDs) == 0 {
		return nil, nil
	}
	return []Event{{Data: s.response(choice)}}, nil
}

// End implements [Stream].
func (s *completionStream) End(r *art.ChatResponse) []Event {
	out := []Event{{Data: s.response(CompletionChoice{FinishReason: &r.Finish})}}
	if opts := s.req.StreamOptions; opts != nil && opts.IncludeUsage {
		last := s.response()
		last.Usage = newUsage(r.Usage)
		out = append(out, Event{Data: last})
	}
	return append(out, Event{Data: done{}})
}

// Fail implements [Stream].
func (s *completionStream) Fail(e *Error) []Event { return []Event{{Data: e}, {Data: done{}}} }
