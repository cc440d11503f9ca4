package server

import (
	"net/http"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/internal/wire"
)

// responses serves OpenAI's Responses API. Responses are not stored.
func (h *handler) responses(w http.ResponseWriter, r *http.Request) error {
	body, err := h.read(w, r)
	if err != nil {
		return err
	}
	req, err := wire.DecodeResponsesRequest(r.Context(), body)
	if err != nil {
		return err
	}
	m, r, err := h.model(r, req.Model, false)
	if err != nil {
		return err
	}
	if req.WantsLogprobs() && h.tokenBytes(m) == nil {
		return wire.FieldError("include", "asks for logprobs, but the text of tokens is not known here")
	}
	opts := req.Options()
	if err := h.limit(m, 1, 1, opts); err != nil {
		return err
	}
	a := answer{model: m, n: 1, ask: chat(m, req.History(), 1, opts)}
	if req.Stream {
		a.stream = wire.NewResponsesStream(req, h.tokenBytes(m))
	}
	a.body = func(replies []*art.ChatResponse) (any, error) {
		return wire.NewResponsesResponse(req, replies[0], h.tokenBytes(m))
	}
	return h.answer(w, r, &a)
}
