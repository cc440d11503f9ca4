package server

import (
	"context"
	"net/http"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/internal/wire"
)

// complete serves chat completions.
func (h *handler) complete(w http.ResponseWriter, r *http.Request) error {
	body, err := h.read(w, r)
	if err != nil {
		return err
	}
	req, err := wire.DecodeChatRequest(r.Context(), body)
	if err != nil {
		return err
	}
	m, r, err := h.model(r, req.Model, false)
	if err != nil {
		return err
	}
	if err := h.checkTokens(m, &req.ChatSettings); err != nil {
		return err
	}
	req.ReturnSamples = h.Samples
	a, opts := answer{model: m, n: req.Choices()}, req.Options()
	if err := h.limit(m, 1, a.n, opts); err != nil {
		return err
	}
	a.ask = chat(m, req.History(), a.n, opts)
	if req.Stream {
		a.stream = wire.NewChatStream(req, h.tokenBytes(m))
	}
	a.body = func(replies []*art.ChatResponse) (any, error) {
		if err := checkPromptLogprobs(req.PromptLogprobs != nil, replies); err != nil {
			return nil, err
		}
		return wire.NewChatResponse(req, replies, h.tokenBytes(m))
	}
	return h.answer(w, r, &a)
}

// chat asks for n replies to a conversation.
func chat(m *art.Model, history *art.History, n int, opts *art.ChatOptions) completion {
	return func(ctx context.Context, piece func(art.ChoicePiece) error) ([]*art.ChatResponse, error) {
		if piece == nil {
			return m.CompleteN(ctx, history, n, opts)
		}
		return m.StreamN(ctx, history, n, opts, piece)
	}
}
