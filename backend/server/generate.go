package server

import (
	"net/http"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/driver"
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
	m, r, err := h.model(r, req.Model, true)
	if err != nil {
		return err
	}
	if _, err := need[driver.Sampler](m, "art.Sampler"); err != nil {
		return err
	}
	shows := wire.ChatSettings{
		Logprobs:               req.ShowsText() && req.Params.Logprobs != nil,
		ReturnTokensAsTokenIDs: req.Params.ReturnTokensAsTokenIDs,
	}
	if err := h.checkTokens(m, &shows); err != nil {
		return err
	}
	a, opts := answer{model: m, n: req.Params.Choices()}, req.Params.Options()
	if err := h.limit(m, 1, a.n, opts); err != nil {
		return err
	}
	a.ask = sample(m, [][]int32{req.TokenIDs}, a.n, opts)
	if req.Stream {
		a.stream = wire.NewGenerateStream(req, h.tokenBytes(m))
	}
	a.body = func(replies []*art.ChatResponse) (any, error) {
		if err := checkPromptLogprobs(req.Params.PromptLogprobs != nil, replies); err != nil {
			return nil, err
		}
		return wire.NewGenerateResponse(req, replies, h.tokenBytes(m)), nil
	}
	return h.answer(w, r, &a)
}
