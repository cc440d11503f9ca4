package wire

import (
	"context"
	"encoding/json"
)

// CompletionRequest is the body of POST /v1/completions: the fields that are supported.
type CompletionRequest struct {
	Prompt Prompt `json:"prompt"`
	// Logprobs 0 adds the logprobs of the sampled tokens; more are not supported.
	Logprobs         *int  `json:"logprobs"`
	AddSpecialTokens *bool `json:"add_special_tokens"` // vLLM's; nil is true
	ChatSettings           // those that shape the reply
}

// Prompt is a text or its token ids.
type Prompt struct {
	Text string
	IDs  []int32 // nil for a text
}

// UnmarshalJSON reads a string, a list of token ids, or a list of one of these.
func (p *Prompt) UnmarshalJSON(data []byte) error {
	*p = Prompt{} // a field that comes twice has the last value
	if json.Unmarshal(data, &p.Text) == nil || json.Unmarshal(data, &p.IDs) == nil {
		return nil
	}
	p.Text, p.IDs = "", nil
	var list []json.RawMessage
	switch {
	case json.Unmarshal(data, &list) != nil:
	case len(list) == 1:
		return p.one(list[0])
	case len(list) > 1 && (list[0][0] == '"' || list[0][0] == '['):
		return FieldError("prompt",
			"has %d prompts; send one in each request: a shared beginning is computed once", len(list))
	}
	return FieldError("prompt", "must be a string or a list of token ids")
}

// one reads the only prompt of a list.
func (p *Prompt) one(data []byte) error {
	if json.Unmarshal(data, &p.Text) == nil {
		return nil
	}
	if json.Unmarshal(data, &p.IDs) != nil {
		return FieldError("prompt", "must be a string or a list of token ids")
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
	p.require(r.Prompt.Text != "" || len(r.Prompt.IDs) > 0, "prompt", "must not be empty")
	p.require(r.Logprobs == nil || *r.Logprobs == 0,
		"logprobs", "must be 0: only the logprobs of the sampled tokens are known")
}

// Special reports whether the tokenizer adds its special tokens to a text.
func (r *CompletionRequest) Special() bool { return r.AddSpecialTokens == nil || *r.AddSpecialTokens }
