package wire

import (
	"context"
	"encoding/json"
	"slices"

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
	if err := json.Unmarshal(body, req); err != nil {
		p.add(decodeError(err))
	} else {
		req.validate(&p)
	}
	if err := p.err(); err != nil {
		return nil, err
	}
	return req, ctx.Err()
}

// validate finds invalid settings.
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
