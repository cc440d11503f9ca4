package wire

import (
	"context"
	"encoding/json"

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
	if err := json.Unmarshal(body, &req.GenerateSettings); err != nil {
		p.add(decodeError(err))
	} else {
		p.require(len(req.TokenIDs) > 0, "token_ids", "must not be empty")
		p.require(req.OutputMode == "" || req.OutputMode == "tokens" || req.OutputMode == "text",
			"output_mode", "must be \"tokens\" or \"text\"")
	}
	if err := req.Params.decode(&p, fields["sampling_params"], req.ShowsText()); err != nil {
		return nil, err
	}
	p.require(req.Params.PromptLogprobs == nil || !req.Stream,
		"prompt_logprobs", "is not supported in a stream; leave stream out")
	if err := p.err(); err != nil {
		return nil, err
	}
	return req, ctx.Err()
}

// textOnly are sampling parameters that only change the text of a reply, which is not always shown.
var textOnly = []string{"detokenize", "include_stop_str_in_output", "skip_special_tokens"}

// decode decodes the sampling parameters.
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
