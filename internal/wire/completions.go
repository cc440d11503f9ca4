package wire

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/goart-dev/art"
)

// CompletionRequest is the body of POST /v1/completions: the fields that are supported.
type CompletionRequest struct {
	Prompts Prompts `json:"prompt"`
	// Logprobs adds the logprobs of the sampled tokens, and so many likeliest ones at each position.
	Logprobs         *int  `json:"logprobs"`
	Echo             bool  `json:"echo"`               // the text begins with the prompt
	AddSpecialTokens *bool `json:"add_special_tokens"` // vLLM's; nil is true
	ChatSettings           // those that shape the reply
}

// Prompts are what is continued.
type Prompts []Prompt

// Prompt is a text or its token ids.
type Prompt struct {
	Text string
	IDs  []int32 // nil for a text
}

// UnmarshalJSON reads a string, a list of token ids, or a list of these.
func (p *Prompts) UnmarshalJSON(data []byte) error {
	*p = nil // a field that comes twice has the last value
	var text *string
	if json.Unmarshal(data, &text) == nil {
		if text != nil {
			*p = Prompts{{Text: *text}}
		}
		return nil
	}
	var ids []int32
	if json.Unmarshal(data, &ids) == nil {
		*p = Prompts{{IDs: ids}}
		return nil
	}
	var texts []string
	if json.Unmarshal(data, &texts) == nil {
		for _, t := range texts {
			*p = append(*p, Prompt{Text: t})
		}
		return nil
	}
	var lists [][]int32
	if json.Unmarshal(data, &lists) != nil {
		return FieldError("prompt", "must be a string, a list of token ids, or a list of strings or of lists of token ids")
	}
	for _, ids := range lists {
		*p = append(*p, Prompt{IDs: ids})
	}
	return nil
}

// completionUnsupported are the fields of /v1/completions that would change the reply, beside those of chat
// completions.
var completionUnsupported = fieldTable{
	"chat_template_kwargs": nil,
	"suffix":               {`""`},
	"tools":                {"[]"},
	"tool_choice":          {`"none"`},
}

// DecodeCompletionRequest decodes and validates the body of a request. Its errors are like those of
// [DecodeChatRequest].
func DecodeCompletionRequest(ctx context.Context, body []byte) (*CompletionRequest, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(body, &fields); err != nil {
		return nil, decodeError(err)
	}
	var p problemList
	completionUnsupported.check(&p, fields)
	delete(fields, "add_special_tokens")
	delete(fields, "echo")
	unsupported.check(&p, fields)
	req := new(CompletionRequest)
	decodeSettings(&p, body, req)
	return req, cmp.Or(p.err(), ctx.Err())
}

func (r *CompletionRequest) validate(p *problemList) {
	r.ChatSettings.validate(p)
	empty := func(one Prompt) bool { return one.Text == "" && len(one.IDs) == 0 }
	p.require(len(r.Prompts) > 0 && !slices.ContainsFunc(r.Prompts, empty), "prompt", "must not be empty")
	requireLogprobs(p, r.Logprobs)
	p.require(!r.Echo || !r.Stream, "echo", "is not supported in a stream; leave stream out")
}

// requireLogprobs finds a number of likeliest tokens that is not supported.
func requireLogprobs(p *problemList, n *int) {
	p.require(n == nil || *n >= 0 && *n <= maxLogprobs, "logprobs", "must be between 0 and %d", maxLogprobs)
}

// Options returns the sampling options of a request. The logprobs of a prompt that is echoed are needed too.
func (r *CompletionRequest) Options() *art.ChatOptions {
	opts := r.ChatSettings.Options()
	opts.TopLogprobs = r.Logprobs
	if r.Echo && r.Logprobs != nil && (opts.PromptLogprobs == nil || *opts.PromptLogprobs < *r.Logprobs) {
		opts.PromptLogprobs = r.Logprobs
	}
	return opts
}

// Special reports whether the tokenizer adds its special tokens to a text.
func (r *CompletionRequest) Special() bool { return r.AddSpecialTokens == nil || *r.AddSpecialTokens }

// CompletionResponse is the body of a response of /v1/completions, and of each event of its stream.
type CompletionResponse struct {
	ID      string             `json:"id"`
	Object  string             `json:"object"` // "text_completion"
	Created int64              `json:"created"`
	Model   string             `json:"model"`   // name@step
	Choices []CompletionChoice `json:"choices"` // none in the event with the usage
	Usage   *Usage             `json:"usage,omitempty"`
}

// CompletionChoice is a reply, or a piece of one.
type CompletionChoice struct {
	Index        int                 `json:"index"`
	Text         string              `json:"text"`
	Logprobs     *CompletionLogprobs `json:"logprobs"`
	FinishReason *string             `json:"finish_reason"`
	// StopReason is vLLM's: the stop string that ended the reply, or the stop token.
	StopReason any `json:"stop_reason,omitempty"`
	// PromptTokenIDs and TokenIDs are set by return_token_ids; in a stream the former are in the first event.
	PromptTokenIDs []int32 `json:"prompt_token_ids,omitempty"`
	TokenIDs       []int32 `json:"token_ids,omitempty"`
	// PromptLogprobs are set by prompt_logprobs.
	PromptLogprobs PromptLogprobs `json:"prompt_logprobs,omitempty"`
}

// CompletionLogprobs are the logprobs of tokens, one element for each.
type CompletionLogprobs struct {
	TextOffset    []int      `json:"text_offset"`    // in characters
	TokenLogprobs []*float32 `json:"token_logprobs"` // null for the first token of a prompt
	Tokens        []string   `json:"tokens"`
	// TopLogprobs are those of the token and of the likeliest ones, by their texts; null if none are asked for.
	TopLogprobs []map[string]float32 `json:"top_logprobs"`
}

// NewCompletionResponse converts the replies to a request. prompts are the texts of its prompts if they are to be
// echoed.
func NewCompletionResponse(
	req *CompletionRequest, replies []*art.ChatResponse, prompts []string, tokens TokenBytes,
) *CompletionResponse {
	resp := newCompletion(replies[0].ID, replies[0].Model)
	resp.Usage = newUsage(replies, req.Choices())
	for i, r := range replies {
		of := i / req.Choices() // the prompt
		prompt := replies[of*req.Choices()].PromptLogprobs
		choice := CompletionChoice{
			Index: i, Text: r.Message.Content, FinishReason: &r.Finish, StopReason: req.stopReason(r),
		}
		whole := r.Piece()
		if req.Logprobs != nil {
			list := req.logprobs(tokens)
			out := &CompletionLogprobs{}
			if req.Echo {
				out = list.prompt(whole.PromptIDs, prompt)
			}
			more := list.sampled(whole.IDs, whole.Logprobs, whole.TopLogprobs)
			out.TextOffset = append(out.TextOffset, more.TextOffset...)
			out.TokenLogprobs = append(out.TokenLogprobs, more.TokenLogprobs...)
			out.Tokens = append(out.Tokens, more.Tokens...)
			out.TopLogprobs = append(out.TopLogprobs, more.TopLogprobs...)
			choice.Logprobs = out
		}
		if req.ReturnTokenIDs {
			choice.TokenIDs, choice.PromptTokenIDs = whole.IDs, whole.PromptIDs
		}
		if req.PromptLogprobs != nil {
			choice.PromptLogprobs = newPromptLogprobs(prompt, tokens)
		}
		if req.Echo {
			choice.Text = prompts[of] + choice.Text
		}
		resp.Choices = append(resp.Choices, choice)
	}
	return resp
}

// completionLogprobs converts the logprobs of a reply, in several parts.
type completionLogprobs struct {
	tokens TokenBytes
	top    int // likeliest tokens at each position
	offset int // characters of the tokens so far
}

// logprobs begins to convert the logprobs of a reply.
func (r *CompletionRequest) logprobs(tokens TokenBytes) completionLogprobs {
	l := completionLogprobs{tokens: r.tokenTexts(tokens)}
	if r.Logprobs != nil {
		l.top = *r.Logprobs
	}
	return l
}

func (l *completionLogprobs) sampled(ids []int32, logprobs []float32, top [][]art.TokenLogprob) *CompletionLogprobs {
	out := &CompletionLogprobs{}
	for i, id := range ids {
		var likeliest []art.TokenLogprob
		if i < len(top) {
			likeliest = top[i]
		}
		l.add(out, id, &logprobs[i], likeliest)
	}
	return out
}

// prompt converts the logprobs of a prompt, at each position those of its token and then of the likeliest others.
func (l *completionLogprobs) prompt(ids []int32, logprobs [][]art.TokenLogprob) *CompletionLogprobs {
	out := &CompletionLogprobs{}
	for i, id := range ids {
		if i == 0 || i >= len(logprobs) || len(logprobs[i]) == 0 {
			l.add(out, id, nil, nil)
			continue
		}
		at := logprobs[i]
		l.add(out, id, &at[0].Logprob, at[1:min(len(at), l.top+1)])
	}
	return out
}

func (l *completionLogprobs) add(out *CompletionLogprobs, id int32, logprob *float32, likeliest []art.TokenLogprob) {
	text := validText(l.tokens(id))
	out.TextOffset = append(out.TextOffset, l.offset)
	out.Tokens = append(out.Tokens, text)
	l.offset += utf8.RuneCountInString(text)
	var own *float32
	var top map[string]float32
	if logprob != nil {
		x := finite(*logprob)
		own, top = &x, map[string]float32{text: x}
		for _, t := range likeliest {
			top[validText(l.tokens(t.ID))] = finite(t.Logprob)
		}
	}
	out.TokenLogprobs = append(out.TokenLogprobs, own)
	if l.top > 0 {
		out.TopLogprobs = append(out.TopLogprobs, top)
	}
}

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

func (s *completionStream) response(choices ...CompletionChoice) *CompletionResponse {
	r := *s.head
	r.Choices = append([]CompletionChoice{}, choices...)
	return &r
}

// Piece implements [Stream]. Tokens without text have an event only if they were asked for.
func (s *completionStream) Piece(p art.ChoicePiece) ([]Event, error) {
	if s.head == nil {
		s.head = newCompletion(p.ID, p.Model)
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

func (s *completionStream) End(replies []*art.ChatResponse) []Event {
	var out []Event
	if opts := s.req.StreamOptions; opts != nil && opts.IncludeUsage {
		last := s.response()
		last.Usage = newUsage(replies, s.req.Choices())
		out = append(out, Event{Data: last})
	}
	return append(out, Event{Data: done{}})
}

func (s *completionStream) Fail(e *Error) []Event { return []Event{{Data: e}, {Data: done{}}} }

func newCompletion(id, model string) *CompletionResponse {
	return &CompletionResponse{
		ID: itemID("cmpl", id), Object: "text_completion", Created: time.Now().Unix(), Model: model,
	}
}
