package wire

import (
	"time"

	"github.com/goart-dev/art"
)

// GenerateResponse is the body of a response of /inference/v1/generate, and of each event of its stream.
type GenerateResponse struct {
	RequestID      string           `json:"request_id"`
	Model          string           `json:"model"` // name@step
	Created        int64            `json:"created"`
	OutputMode     string           `json:"output_mode"`
	Choices        []GenerateChoice `json:"choices"`
	Usage          *Usage           `json:"usage,omitempty"`
	PromptTokenIDs []int32          `json:"prompt_token_ids,omitempty"`
	PromptLogprobs PromptLogprobs   `json:"prompt_logprobs,omitempty"`
}

// GenerateChoice is a reply, or a piece of one.
type GenerateChoice struct {
	Index        int               `json:"index"`
	FinishReason *string           `json:"finish_reason"`
	TokenIDs     []int32           `json:"token_ids"`
	Text         *string           `json:"text,omitempty"` // in the mode "text"
	Logprobs     *GenerateLogprobs `json:"logprobs,omitempty"`
}

// GenerateLogprobs are the logprobs of sampled tokens.
type GenerateLogprobs struct {
	Content []GenerateLogprob `json:"content"`
}

// GenerateLogprob is one sampled token.
type GenerateLogprob struct {
	TokenID     int32      `json:"token_id"`
	Logprob     float32    `json:"logprob"`
	TopLogprobs []struct{} `json:"top_logprobs"` // always empty
}

// generateStream writes a reply as the events of /inference/v1/generate.
type generateStream struct {
	req  *GenerateRequest
	head *GenerateResponse // what all events have; nil before the first
}

// NewGenerateStream returns the events of the reply to a request.
func NewGenerateStream(req *GenerateRequest) Stream { return &generateStream{req: req} }

// NewGenerateResponse converts the reply to a request.
func NewGenerateResponse(req *GenerateRequest, reply *art.ChatResponse) *GenerateResponse {
	s := &generateStream{req: req}
	choice := s.choice(reply.Piece())
	choice.FinishReason = &reply.Finish
	r := s.response(choice)
	r.Usage = newUsage(reply.Usage)
	if req.ReturnTokenIDs {
		r.PromptTokenIDs = req.TokenIDs
	}
	return r
}

// choice converts a piece, the first of which tells what all events have.
func (s *generateStream) choice(p art.Piece) GenerateChoice {
	if s.head == nil {
		s.head = &GenerateResponse{
			RequestID: s.req.RequestID, Model: p.Model, Created: time.Now().Unix(), OutputMode: s.req.OutputMode,
		}
		if s.head.RequestID == "" {
			s.head.RequestID = itemID("gen", p.ID)
		}
		if s.head.OutputMode == "" {
			s.head.OutputMode = "tokens"
		}
	}
	choice := GenerateChoice{TokenIDs: append([]int32{}, p.IDs...)}
	if s.head.OutputMode == "text" {
		choice.Text = &p.Content
	}
	if s.req.Params.Logprobs == nil {
		return choice
	}
	choice.Logprobs = &GenerateLogprobs{Content: []GenerateLogprob{}}
	for i, id := range p.IDs {
		one := GenerateLogprob{TokenID: id, Logprob: finite(p.Logprobs[i]), TopLogprobs: []struct{}{}}
		choice.Logprobs.Content = append(choice.Logprobs.Content, one)
	}
	return choice
}

// response returns the next event.
func (s *generateStream) response(choices ...GenerateChoice) *GenerateResponse {
	r := *s.head
	r.Choices = append([]GenerateChoice{}, choices...)
	return &r
}

// Piece implements [Stream].
func (s *generateStream) Piece(p art.Piece) ([]Event, error) {
	first := s.head == nil
	r := s.response(s.choice(p))
	if first && s.req.ReturnTokenIDs {
		r.PromptTokenIDs = s.req.TokenIDs
	}
	return []Event{{Data: r}}, nil
}

// End implements [Stream].
func (s *generateStream) End(r *art.ChatResponse) []Event {
	last := s.choice(art.Piece{})
	last.FinishReason = &r.Finish
	out := []Event{{Data: s.response(last)}}
	if opts := s.req.StreamOptions; opts != nil && opts.IncludeUsage {
		usage := s.response()
		usage.Usage = newUsage(r.Usage)
		out = append(out, Event{Data: usage})
	}
	return append(out, Event{Data: done{}})
}

// Fail implements [Stream].
func (s *generateStream) Fail(e *Error) []Event { return []Event{{Data: e}, {Data: done{}}} }
