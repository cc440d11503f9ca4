package server

import (
	"net/http"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/internal/wire"
)

// generate serves vLLM's API of token ids in and out.
func (h *handler) generate(w http.ResponseWriter, r *http.Request) error {
	body, err := h.read(w, r)
	if err != nil {
		return err
	}
	req, err := wire.DecodeGenerateRequest(r.Context(), body)
	if err != nil {
		return err
	}
	m, err := h.models.findOrOnly(r.Context(), req.Model)
	if err != nil {
		return err
	}
	if _, err := need[art.Sampler](m, "art.Sampler"); err != nil {
		return err
	}
	a := answer{model: m, ask: sample(m, req.TokenIDs, req.Params.Options())}
	if req.Stream {
		a.stream = wire.NewGenerateStream(req)
	}
	a.body = func(reply *art.ChatResponse) (any, error) {
		resp := wire.NewGenerateResponse(req, reply)
		var err error
		if req.Params.PromptLogprobs != nil {
			resp.PromptLogprobs, err = h.promptLogprobs(r.Context(), m, reply)
		}
		return resp, err
	}
	return h.answer(w, r, &a)
}
