package server

import (
	"context"
	"net/http"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/driver"
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
	m, r, err := h.model(r, req.Model, false)
	if err != nil {
		return err
	}
	shows := wire.ChatSettings{Logprobs: req.Logprobs != nil, ReturnTokensAsTokenIDs: req.ReturnTokensAsTokenIDs}
	if err := h.checkTokens(m, &shows); err != nil {
		return err
	}
	a, opts := answer{model: m, n: req.Choices() * len(req.Prompts), each: req.Choices()}, req.Options()
	if err := h.limit(m, len(req.Prompts), req.Choices(), opts); err != nil {
		return err
	}
	prompts, err := promptIDs(r.Context(), m, req)
	if err != nil {
		return err
	}
	a.ask = sample(m, prompts, req.Choices(), opts)
	if req.Stream {
		a.stream = wire.NewCompletionStream(req, h.tokenBytes(m))
	}
	a.body = func(replies []*art.ChatResponse) (any, error) {
		if err := checkPromptLogprobs(opts.PromptLogprobs != nil, replies); err != nil {
			return nil, err
		}
		texts, err := echoed(r.Context(), m, req, prompts)
		return wire.NewCompletionResponse(req, replies, texts, h.tokenBytes(m)), err
	}
	return h.answer(w, r, &a)
}

// promptIDs returns the token ids of the prompts.
func promptIDs(ctx context.Context, m *art.Model, req *wire.CompletionRequest) ([][]int32, error) {
	if _, err := need[driver.Sampler](m, "art.Sampler"); err != nil {
		return nil, err
	}
	ids := make([][]int32, len(req.Prompts))
	for i, p := range req.Prompts {
		if ids[i] = p.IDs; p.IDs != nil {
			continue
		}
		tokenizer, err := need[driver.Tokenizer](m, "art.Tokenizer")
		if err != nil {
			return nil, err
		}
		if ids[i], err = tokenizer.Encode(ctx, m, p.Text, req.Special()); err != nil {
			return nil, err
		}
	}
	return ids, nil
}

// echoed returns the texts of the prompts if they are to be repeated.
func echoed(ctx context.Context, m *art.Model, req *wire.CompletionRequest, prompts [][]int32) ([]string, error) {
	if !req.Echo {
		return nil, nil
	}
	texts := make([]string, len(prompts))
	for i, p := range req.Prompts {
		if texts[i] = p.Text; p.IDs == nil {
			continue
		}
		tokenizer, err := need[driver.Tokenizer](m, "art.Tokenizer")
		if err != nil {
			return nil, err
		}
		if texts[i], err = tokenizer.Decode(ctx, m, p.IDs); err != nil {
			return nil, err
		}
	}
	return texts, nil
}

// sample asks for n continuations of each prompt.
func sample(m *art.Model, prompts [][]int32, n int, opts *art.ChatOptions) completion {
	return func(ctx context.Context, piece func(art.ChoicePiece) error) ([]*art.ChatResponse, error) {
		return m.SampleN(ctx, prompts, n, opts, piece)
	}
}
