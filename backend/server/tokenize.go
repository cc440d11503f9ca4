package server

import (
	"context"
	"net/http"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/driver"
	"github.com/goart-dev/art/internal/wire"
)

// tokenize serves the token ids of a text or a conversation.
func (h *handler) tokenize(w http.ResponseWriter, r *http.Request) error {
	body, err := h.read(w, r)
	if err != nil {
		return err
	}
	req, err := wire.DecodeTokenizeRequest(r.Context(), body)
	if err != nil {
		return err
	}
	m, r, err := h.model(r, req.Model, true)
	if err != nil {
		return err
	}
	ids, err := tokenized(r.Context(), m, req)
	if err != nil {
		return err
	}
	var texts wire.TokenBytes
	if req.ReturnTokenStrs {
		if texts = h.tokenBytes(m); texts == nil {
			return wire.FieldError("return_token_strs", "is not supported here: the text of tokens is not known")
		}
	}
	return sendJSON(w, http.StatusOK, wire.NewTokenizeResponse(ids, texts))
}

// tokenized returns the ids of what a request has.
func tokenized(ctx context.Context, m *art.Model, req *wire.TokenizeRequest) ([]int32, error) {
	if req.Chat != nil {
		return render(ctx, m, req.Chat.History(), req.Options())
	}
	tokenizer, err := need[driver.Tokenizer](m, "art.Tokenizer")
	if err != nil {
		return nil, err
	}
	return tokenizer.Encode(ctx, m, *req.Prompt, req.Special())
}

// detokenize serves the text of token ids.
func (h *handler) detokenize(w http.ResponseWriter, r *http.Request) error {
	body, err := h.read(w, r)
	if err != nil {
		return err
	}
	req, err := wire.DecodeDetokenizeRequest(body)
	if err != nil {
		return err
	}
	m, r, err := h.model(r, req.Model, true)
	if err != nil {
		return err
	}
	tokenizer, err := need[driver.Tokenizer](m, "art.Tokenizer")
	if err != nil {
		return err
	}
	text, err := tokenizer.Decode(r.Context(), m, req.Tokens)
	if err != nil {
		return err
	}
	return sendJSON(w, http.StatusOK, wire.DetokenizeResponse{Prompt: text})
}
