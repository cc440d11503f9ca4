package server

import (
	"context"
	"net/http"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/internal/wire"
)

// completions serves OpenAI's older API: a text, or token ids, is continued.
func (h *handler) completions(w http.ResponseWriter, r *http.Request) error {
	body, err := h.read(w, r)
	if err != nil {
		return err
	}
	req, err := wire.DecodeCompletionRequest(r.Context(), body)
	if err != nil {
		return err
	}
	m, err := h.models.find(r.Context(), req.Model)
	if err != nil {
		return err
	}
	shows := wire.ChatSettings{Logprobs: req.Logprobs != nil, ReturnTokensAsTokenIDs: req.ReturnTokensAsTokenIDs}
	if err := h.checkTokens(&shows); err != nil {
		return err
	}
	ids, err := promptIDs(r.Context(), m, req)
	if err != nil {
		return err
	}
	return h.answer(w, r, h.completionAnswer(r.Context(), m, req, ids))
}

// completionAnswer returns how a request is answered.
func (h *handler) completionAnswer(
	ctx context.Context, m *art.Model, req *wire.CompletionRequest, ids []int32,
) *answer {
	a := &answer{model: m, ask: sample(m, ids, req.Options())}
	if req.Stream {
		a.stream = wire.NewCompletionStream(req, h.tokenBytes(m))
	}
	a.body = func(reply *art.ChatResponse) (any, error) {
		resp := wire.NewCompletionResponse(req, reply, h.tokenBytes(m))
		if req.PromptLogprobs == nil {
			return resp, nil
		}
		var err error
		resp.Choices[0].PromptLogprobs, err = h.promptLogprobs(ctx, m, reply)
		return resp, err
	}
	return a
}

// promptIDs returns the token ids of a prompt.
func promptIDs(ctx context.Context, m *art.Model, req *wire.CompletionRequest) ([]int32, error) {
	if _, err := need[art.Sampler](m, "art.Sampler"); err != nil || req.Prompt.IDs != nil {
		return req.Prompt.IDs, err
	}
	tokenizer, err := need[art.Tokenizer](m, "art.Tokenizer")
	if err != nil {
		return nil, err
	}
	return tokenizer.Encode(ctx, m, req.Prompt.Text, req.Special())
}

// sample asks for the continuation of token ids.
func sample(m *art.Model, ids []int32, opts *art.ChatOptions) completion {
	return func(ctx context.Context, piece func(art.Piece) error) (*art.ChatResponse, error) {
		return m.Sample(ctx, ids, opts, piece)
	}
}
