package wire

import (
	"cmp"
	"context"
	"encoding/json"
	"strconv"
	"time"

	"github.com/goart-dev/art"
)

// GenerateRequest is the body of POST /inference/v1/generate, vLLM's: token ids in, token ids out.
type GenerateRequest struct {
	GenerateSettings
	Params GenerateParams
}

// GenerateSettings are the fields of a [GenerateRequest] other than the sampling parameters.
type GenerateSettings struct {
	Model          string         `json:"model"`
	RequestID      string         `json:"request_id"`
	TokenIDs       []int32        `json:"token_ids"`
	ReturnTokenIDs bool           `json:"return_token_ids"`
	OutputMode     string         `json:"output_mode"` // "tokens", the default, or "text"
	Stream         bool           `json:"stream"`
	StreamOptions  *StreamOptions `json:"stream_options"`
}

// GenerateParams are the sampling parameters, whose names are those of chat completions. Logprobs adds the logprobs of
// the sampled tokens, and so many likeliest ones at each position.
type GenerateParams struct {
	ChatSettings
	Logprobs *int `json:"logprobs"`
}

// Fields of /inference/v1/generate and of its sampling parameters that would change the reply, the latter beside those
// of chat completions.
var (
	generateUnsupported = fieldTable{
		"content_parts":           {"[]"},
		"features":                nil,
		"kv_transfer_params":      nil,
		"reasoning_ended":         nil,
		"reasoning_parser_kwargs": nil,
	}
	paramsUnsupported = fieldTable{
		"chat_template_kwargs": nil,
		"detokenize":           {"true"},
		"extra_args":           nil,
		"prompt_logprob_start": nil,
		"stream":               {"false"},
		"tool_choice":          nil,
		"tools":                nil,
	}
)

// DecodeGenerateRequest decodes and validates the body of a request. Its errors are like those of [DecodeChatRequest].
func DecodeGenerateRequest(ctx context.Context, body []byte) (*GenerateRequest, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(body, &fields); err != nil {
		return nil, decodeError(err)
	}
	var p problemList
	generateUnsupported.check(&p, fields)
	req := new(GenerateRequest)
	decodeSettings(&p, body, &req.GenerateSettings)
	if err := req.Params.decode(&p, fields["sampling_params"], req.ShowsText()); err != nil {
		return nil, err
	}
	p.require(req.Params.PromptLogprobs == nil || !req.Stream,
		"prompt_logprobs", "is not supported in a stream; leave stream out")
	return req, cmp.Or(p.err(), ctx.Err())
}

// ModelName is the name of the model; "" for the only one.
func (s *GenerateSettings) ModelName() string { return s.Model }

func (s *GenerateSettings) validate(p *problemList) {
	p.require(len(s.TokenIDs) > 0, "token_ids", "must not be empty")
	p.require(s.OutputMode == "" || s.OutputMode == "tokens" || s.OutputMode == "text",
		"output_mode", "must be \"tokens\" or \"text\"")
}

// textOnly are sampling parameters that only change the text of a reply, which is not always shown.
var textOnly = []string{"detokenize", "include_stop_str_in_output", "skip_special_tokens"}

func (s *GenerateParams) decode(p *problemList, raw json.RawMessage, showsText bool) error {
	if len(raw) == 0 || string(raw) == "null" {
		return nil
	}
	var fields map[string]json.RawMessage
	if json.Unmarshal(raw, &fields) != nil {
		return FieldError("sampling_params", "must be an object")
	}
	for _, name := range textOnly {
		if !showsText {
			delete(fields, name)
		}
	}
	paramsUnsupported.check(p, fields)
	unsupported.check(p, fields)
	if err := json.Unmarshal(raw, s); err != nil {
		p.add(decodeError(err))
		return nil
	}
	s.validate(p)
	requireLogprobs(p, s.Logprobs)
	return nil
}

// Options returns the sampling options.
func (s *GenerateParams) Options() *art.ChatOptions {
	opts := s.ChatSettings.Options()
	opts.TopLogprobs = s.Logprobs
	return opts
}

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
	Index        int     `json:"index"`
	FinishReason *string `json:"finish_reason"`
	// StopReason is the stop string that ended the reply, or the stop token.
	StopReason any               `json:"stop_reason,omitempty"`
	TokenIDs   []int32           `json:"token_ids"`
	Text       *string           `json:"text,omitempty"` // in the mode "text"
	Logprobs   *GenerateLogprobs `json:"logprobs,omitempty"`
	// WeightVersions say which policy step sampled which tokens: one step sampled all. In a stream they are in the last
	// event of a reply.
	WeightVersions []WeightVersion `json:"weight_versions,omitempty"`
}

// WeightVersion is the policy step of the tokens from Start to before End.
type WeightVersion struct {
	Version string `json:"version"`
	Start   int    `json:"start"`
	End     int    `json:"end"`
}

// GenerateLogprobs are the logprobs of sampled tokens: elements are [GenerateLogprob], or [TokenLogprob] in the mode
// "text".
type GenerateLogprobs struct {
	Content []any `json:"content"`
}

// GenerateLogprob is one sampled token. The likeliest ones come after it in TopLogprobs.
type GenerateLogprob struct {
	GenerateTop
	TopLogprobs []GenerateTop `json:"top_logprobs"`
}

// GenerateTop is one token at a position. Its rank is 1 if it is the likeliest; it is left out if it is not known.
type GenerateTop struct {
	TokenID int32   `json:"token_id"`
	Logprob float32 `json:"logprob"`
	Rank    int     `json:"rank,omitempty"`
}

// NewGenerateResponse converts the replies to a request. tokens is called for logprobs in the mode "text", and may be
// nil otherwise.
func NewGenerateResponse(req *GenerateRequest, replies []*art.ChatResponse, tokens TokenBytes) *GenerateResponse {
	first := replies[0]
	resp := req.begin(first.ID, first.Model)
	for i, r := range replies {
		whole := r.Piece()
		choice := req.choice(i, &whole, tokens)
		req.end(&choice, r)
		resp.Choices = append(resp.Choices, choice)
	}
	resp.Usage = newUsage(replies, len(replies))
	if req.ReturnTokenIDs {
		resp.PromptTokenIDs = req.TokenIDs
	}
	if req.Params.PromptLogprobs != nil {
		resp.PromptLogprobs = newPromptLogprobs(first.PromptLogprobs, tokens)
	}
	return resp
}

func (r *GenerateRequest) begin(id, model string) *GenerateResponse {
	return &GenerateResponse{
		RequestID: cmp.Or(r.RequestID, itemID("gen", id)), Model: model, Created: time.Now().Unix(),
		OutputMode: cmp.Or(r.OutputMode, "tokens"),
	}
}

// ShowsText reports whether a response has texts beside ids.
func (r *GenerateRequest) ShowsText() bool { return r.OutputMode == "text" }

func (r *GenerateRequest) choice(index int, p *art.Piece, tokens TokenBytes) GenerateChoice {
	choice := GenerateChoice{Index: index, TokenIDs: append([]int32{}, p.IDs...)}
	if r.ShowsText() {
		choice.Text = &p.Content
	}
	if r.Params.Logprobs == nil {
		return choice
	}
	choice.Logprobs = &GenerateLogprobs{Content: []any{}}
	if r.ShowsText() {
		for _, t := range newLogprobs(p.IDs, p.Logprobs, p.TopLogprobs, r.Params.tokenTexts(tokens)).Content {
			choice.Logprobs.Content = append(choice.Logprobs.Content, t)
		}
		return choice
	}
	for i, id := range p.IDs {
		var top []art.TokenLogprob
		if i < len(p.TopLogprobs) {
			top = p.TopLogprobs[i]
		}
		choice.Logprobs.Content = append(choice.Logprobs.Content, newGenerateLogprob(id, p.Logprobs[i], top))
	}
	return choice
}

func newGenerateLogprob(id int32, logprob float32, top []art.TokenLogprob) GenerateLogprob {
	own := GenerateTop{TokenID: id, Logprob: finite(logprob)}
	for _, t := range top {
		if t.ID == id {
			own.Rank = t.Rank
		}
	}
	out := GenerateLogprob{GenerateTop: own, TopLogprobs: []GenerateTop{}}
	if len(top) > 0 {
		out.TopLogprobs = append(out.TopLogprobs, own)
	}
	for _, t := range top {
		if t.ID != id {
			out.TopLogprobs = append(out.TopLogprobs, GenerateTop{t.ID, finite(t.Logprob), t.Rank})
		}
	}
	return out
}

// end adds what is known when a reply has ended.
func (r *GenerateRequest) end(choice *GenerateChoice, reply *art.ChatResponse) {
	choice.FinishReason, choice.StopReason = &reply.Finish, r.Params.stopReason(reply)
	if sample := reply.Message.Sample; sample != nil {
		choice.WeightVersions = []WeightVersion{{strconv.Itoa(sample.Step), 0, len(sample.IDs)}}
	}
}

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

func (s *generateStream) response(choices ...GenerateChoice) *GenerateResponse {
	r := *s.head
	r.Choices = append([]GenerateChoice{}, choices...)
	return &r
}

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

func (s *generateStream) End(replies []*art.ChatResponse) []Event {
	var out []Event
	if opts := s.req.StreamOptions; opts != nil && opts.IncludeUsage {
		usage := s.response()
		usage.Usage = newUsage(replies, len(replies))
		out = append(out, Event{Data: usage})
	}
	return append(out, Event{Data: done{}})
}

func (s *generateStream) Fail(e *Error) []Event { return []Event{{Data: e}, {Data: done{}}} }
