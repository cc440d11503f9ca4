package wire

import (
	"strconv"
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

// begin returns a response without choices.
func (r *GenerateRequest) begin(id, model string) *GenerateResponse {
	out := &GenerateResponse{
		RequestID: r.RequestID, Model: model, Created: time.Now().Unix(), OutputMode: r.OutputMode,
	}
	if out.RequestID == "" {
		out.RequestID = itemID("gen", id)
	}
	if out.OutputMode == "" {
		out.OutputMode = "tokens"
	}
	return out
}

// ShowsText reports whether a response has texts beside ids.
func (r *GenerateRequest) ShowsText() bool { return r.OutputMode == "text" }

// choice converts a piece.
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

// newGenerateLogprob converts the logprob of a sampled token.
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
