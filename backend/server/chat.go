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
	m, err := h.models.find(r.Context(), req.Model)
	if err != nil {
		return err
	}
	if err := h.checkTokens(&req.ChatSettings); err != nil {
		return err
	}
	a := answer{model: m, ask: chat(m, req.History(), req.Options())}
	if req.Stream {
		a.stream = wire.NewChatStream(req, h.tokenBytes(m))
	}
	a.body = func(reply *art.ChatResponse) (any, error) {
		resp, err := wire.NewChatResponse(req, reply, h.tokenBytes(m))
		if err == nil && req.PromptLogprobs != nil {
			resp.PromptLogprobs, err = h.promptLogprobs(r.Context(), m, reply)
		}
		return resp, err
	}
	return h.answer(w, r, &a)
}

// chat asks for the reply to a conversation.
func chat(m *art.Model, history *art.History, opts *art.ChatOptions) completion {
	return func(ctx context.Context, piece func(art.Piece) error) (*art.ChatResponse, error) {
		if piece == nil {
			return m.Complete(ctx, history, opts)
		}
		return m.Stream(ctx, history, opts, piece)
	}
}
