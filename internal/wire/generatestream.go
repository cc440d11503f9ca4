package wire

import (
	"github.com/goart-dev/art"
)

// generateStream writes replies as the events of /inference/v1/generate.
type generateStream struct {
	req    *GenerateRequest
	tokens TokenBytes
	head   *GenerateResponse // what all events have; nil before the first
}

// NewGenerateStream returns the events of the replies to a request. tokens is called for logprobs in the mode "text".
func NewGenerateStream(req *GenerateRequest, tokens TokenBytes) Stream {
	return &generateStream{req: req, tokens: tokens}
}

// response returns the next event.
func (s *generateStream) response(choices ...GenerateChoice) *GenerateResponse {
	r := *s.head
	r.Choices = append([]GenerateChoice{}, choices...)
	return &r
}

// Piece implements [Stream].
func (s *generateStream) Piece(p art.ChoicePiece) ([]Event, error) {
	first := s.head == nil
	if first {
		s.head = s.req.begin(p.ID, p.Model)
	}
	choice := s.req.choice(p.Choice, &p.Piece, s.tokens)
	if p.End != nil {
		s.req.end(&choice, p.End)
	}
	r := s.response(choice)
	if first && s.req.ReturnTokenIDs {
		r.PromptTokenIDs = s.req.TokenIDs
	}
	return []Event{{Data: r}}, nil
}

// End implements [Stream].
func (s *generateStream) End(replies []*art.ChatResponse) []Event {
	var out []Event
	if opts := s.req.StreamOptions; opts != nil && opts.IncludeUsage {
		usage := s.response()
		usage.Usage = newUsage(replies, len(replies))
		out = append(out, Event{Data: usage})
	}
	return append(out, Event{Data: done{}})
}

// Fail implements [Stream].
func (s *generateStream) Fail(e *Error) []Event { return []Event{{Data: e}, {Data: done{}}} }
