package wire

import (
	"time"

	"github.com/goart-dev/art"
)

// completionStream writes replies as the events of /v1/completions.
type completionStream struct {
	req     *CompletionRequest
	head    *CompletionResponse // what all events have; nil before the first
	choices []completionChoice
}

// completionChoice is one reply.
type completionChoice struct {
	begun bool
	list  completionLogprobs
}

// NewCompletionStream returns the events of the replies to a request. tokens is called for logprobs only.
func NewCompletionStream(req *CompletionRequest, tokens TokenBytes) Stream {
	s := &completionStream{req: req, choices: make([]completionChoice, req.Choices()*len(req.Prompts))}
	for i := range s.choices {
		s.choices[i].list = req.logprobs(tokens)
	}
	return s
}

// begin sets what all events have.
func (s *completionStream) begin(id, model string) {
	s.head = newCompletion(id, model)
}

// response returns the next event.
func (s *completionStream) response(choices ...CompletionChoice) *CompletionResponse {
	r := *s.head
	r.Choices = append([]CompletionChoice{}, choices...)
	return &r
}

// Piece implements [Stream]. Tokens without text have an event only if they were asked for.
func (s *completionStream) Piece(p art.ChoicePiece) ([]Event, error) {
	if s.head == nil {
		s.begin(p.ID, p.Model)
	}
	choice, at := CompletionChoice{Index: p.Choice, Text: p.Content}, &s.choices[p.Choice]
	if s.req.Logprobs != nil && len(p.IDs) > 0 {
		choice.Logprobs = at.list.sampled(p.IDs, p.Logprobs, p.TopLogprobs)
	}
	if s.req.ReturnTokenIDs {
		choice.TokenIDs, choice.PromptTokenIDs = p.IDs, p.PromptIDs
	}
	if p.End != nil {
		choice.FinishReason, choice.StopReason = &p.End.Finish, s.req.stopReason(p.End)
	}
	if at.begun && p.End == nil && choice.Text == "" && choice.Logprobs == nil && len(choice.TokenIDs) == 0 {
		return nil, nil
	}
	at.begun = true
	return []Event{{Data: s.response(choice)}}, nil
}

// End implements [Stream].
func (s *completionStream) End(replies []*art.ChatResponse) []Event {
	var out []Event
	if opts := s.req.StreamOptions; opts != nil && opts.IncludeUsage {
		last := s.response()
		last.Usage = newUsage(replies, s.req.Choices())
		out = append(out, Event{Data: last})
	}
	return append(out, Event{Data: done{}})
}

// Fail implements [Stream].
func (s *completionStream) Fail(e *Error) []Event { return []Event{{Data: e}, {Data: done{}}} }

// newCompletion returns a response without choices.
func newCompletion(id, model string) *CompletionResponse {
	return &CompletionResponse{
		ID: itemID("cmpl", id), Object: "text_completion", Created: time.Now().Unix(), Model: model,
	}
}
