package server

import (
	"context"
	"fmt"
	"net/http"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/internal/wire"
)

// need returns the backend of a model as an optional interface of package art. Without it the status is 501.
func need[T any](m *art.Model, what string) (T, error) {
	if b, ok := m.Backend().(T); ok {
		return b, nil
	}
	var none T
	return none, &wire.Error{
		Status:  http.StatusNotImplemented,
		Message: fmt.Sprintf("the backend of model %s is no %s, which this needs", m.Name(), what),
		Type:    wire.TypeInvalid,
		Code:    "not_implemented",
	}
}

// tokenBytes returns the bytes of a model's tokens, nil when they are not known.
func (h *handler) tokenBytes(m *art.Model) wire.TokenBytes {
	if h.Tokens == nil {
		return nil
	}
	return func(id int32) []byte { return h.Tokens(m, id) }
}

// checkTokens refuses to show the text of tokens that are not known.
func (h *handler) checkTokens(s *wire.ChatSettings) error {
	if s.Logprobs && h.Tokens == nil && !s.ReturnTokensAsTokenIDs {
		return wire.FieldError("logprobs", "is not supported here: the text of tokens is not known; "+
			"use return_token_ids or return_tokens_as_token_ids")
	}
	return nil
}

// render returns the ids of the prompt of a conversation.
func render(ctx context.Context, m *art.Model, h *art.History, opts *art.ChatOptions) ([]int32, error) {
	if _, err := need[art.Tokenizer](m, "art.Tokenizer"); err != nil {
		return nil, err
	}
	return m.Tokenize(ctx, h, opts)
}

// promptLogprobs scores the prompt of a reply, with the step that has replied.
func (h *handler) promptLogprobs(
	ctx context.Context, m *art.Model, reply *art.ChatResponse,
) (wire.PromptLogprobs, error) {
	sampler, err := need[art.Sampler](m, "art.Sampler")
	if err != nil {
		return nil, err
	}
	sample := reply.Message.Sample
	if sample == nil {
		return nil, wire.FieldError("prompt_logprobs", "is not supported by model %s, which is frozen: "+
			"its replies carry no tokens", reply.Model)
	}
	logprobs, step, err := sampler.Logprobs(ctx, m, sample.PromptIDs)
	if err != nil {
		return nil, err
	}
	if step != sample.Step {
		return nil, updated(sample.Step, step)
	}
	return wire.NewPromptLogprobs(sample.PromptIDs, logprobs, h.tokenBytes(m)), nil
}

// updated returns the error of a model that was trained while a request needed one step of it.
func updated(from, to int) *wire.Error {
	return &wire.Error{
		Status:     http.StatusServiceUnavailable,
		Message:    fmt.Sprintf("the model went from step %d to %d before its prompt was scored; try again", from, to),
		Type:       wire.TypeInternal,
		Code:       "model_updated",
		RetryAfter: 1,
	}
}
