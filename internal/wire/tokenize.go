package wire

import (
	"context"
	"encoding/json"

	"github.com/goart-dev/art"
)

// TokenizeRequest is the body of POST /tokenize, vLLM's: a text, or a conversation.
type TokenizeRequest struct {
	Prompt           *string      `json:"prompt"` // nil for a conversation
	Chat             *ChatRequest `json:"-"`      // nil for a text
	Model            string       `json:"model"`
	AddSpecialTokens *bool        `json:"add_special_tokens"` // to a text; nil is true
	ReturnTokenStrs  bool         `json:"return_token_strs"`
}

// tokenizeUnsupported are the fields of /tokenize that would change the ids of a conversation.
var tokenizeUnsupported = fieldTable{
	"add_generation_prompt":  {"true"},
	"add_special_tokens":     {"false"},
	"chat_template":          nil,
	"continue_final_message": {"false"},
	"mm_processor_kwargs":    nil,
}

// DecodeTokenizeRequest decodes and validates the body of a request.
func DecodeTokenizeRequest(ctx context.Context, body []byte) (*TokenizeRequest, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(body, &fields); err != nil {
		return nil, decodeError(err)
	}
	req := new(TokenizeRequest)
	if err := json.Unmarshal(body, req); err != nil {
		return nil, decodeError(err)
	}
	if len(fields["messages"]) == 0 {
		if req.Prompt == nil {
			return nil, FieldError("prompt", "is missing; send a prompt or messages")
		}
		return req, nil
	}
	if req.Prompt != nil {
		return nil, FieldError("prompt", "excludes messages; send one of them")
	}
	var p problemList
	tokenizeUnsupported.check(&p, fields)
	req.Chat = new(ChatRequest)
	if err := req.Chat.decodeInput(ctx, &p, fields); err != nil {
		return nil, err
	}
	req.Chat.ChatTemplateKwargs = fields["chat_template_kwargs"]
	p.require(isObject(req.Chat.ChatTemplateKwargs),
		"chat_template_kwargs", "must be an object of variables for the chat template")
	return req, p.err()
}

// ModelName is the name of the model; "" for the only one.
func (r *TokenizeRequest) ModelName() string { return r.Model }

// ModelName is the name of the model; "" for the only one.
func (r *DetokenizeRequest) ModelName() string { return r.Model }

// Special reports whether the tokenizer adds its special tokens to a text.
func (r *TokenizeRequest) Special() bool { return r.AddSpecialTokens == nil || *r.AddSpecialTokens }

// TokenizeResponse is the body of a response of /tokenize.
type TokenizeResponse struct {
	Count       int      `json:"count"`
	MaxModelLen *int     `json:"max_model_len"` // always null: it is not known
	Tokens      []int32  `json:"tokens"`
	TokenStrs   []string `json:"token_strs"` // null unless asked for
}

// NewTokenizeResponse converts ids. tokens is nil unless the texts of tokens are wanted.
func NewTokenizeResponse(ids []int32, tokens TokenBytes) *TokenizeResponse {
	r := &TokenizeResponse{Count: len(ids), Tokens: append([]int32{}, ids...)}
	if tokens == nil {
		return r
	}
	r.TokenStrs = []string{}
	for _, id := range ids {
		r.TokenStrs = append(r.TokenStrs, validText(tokens(id)))
	}
	return r
}

// DetokenizeRequest is the body of POST /detokenize, vLLM's.
type DetokenizeRequest struct {
	Model  string  `json:"model"`
	Tokens []int32 `json:"tokens"`
}

// DecodeDetokenizeRequest decodes the body of a request.
func DecodeDetokenizeRequest(_ context.Context, body []byte) (*DetokenizeRequest, error) {
	req := new(DetokenizeRequest)
	if err := json.Unmarshal(body, req); err != nil {
		return nil, decodeError(err)
	}
	if req.Tokens == nil {
		return nil, FieldError("tokens", "is missing: it is the list of token ids")
	}
	return req, nil
}

// DetokenizeResponse is the body of a response of /detokenize.
type DetokenizeResponse struct {
	Prompt string `json:"prompt"`
}

// Options returns the options of a conversation.
func (r *TokenizeRequest) Options() *art.ChatOptions {
	return &art.ChatOptions{TemplateArgs: r.Chat.ChatTemplateKwargs}
}
