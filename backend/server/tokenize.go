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
	req, m, r, err := readRequest(h, w, r, wire.DecodeTokenizeRequest, true)
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
	req, m, r, err := readRequest(h, w, r, wire.DecodeDetokenizeRequest, true)
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

// need returns the backend of a model as an optional interface of package art. Without it the status is 501.
func need[T any](m *art.Model, what string) (T, error) {
	if b, ok := m.Backend().(T); ok {
		return b, nil
	}
	var none T
	return none, refused(http.StatusNotImplemented, "not_implemented",
		"the backend of model %s is no %s, which this needs", m.Name(), what)
}

// tokenBytes returns the bytes of a model's tokens, nil when they are not known.
func (h *handler) tokenBytes(m *art.Model) wire.TokenBytes {
	if h.Tokens != nil {
		return func(id int32) []byte { return h.Tokens(m, id) }
	}
	tokenizer, ok := m.Backend().(driver.Tokenizer)
	if !ok {
		return nil
	}
	return func(id int32) []byte {
		list, err := tokenizer.TokenBytes(context.Background(), m, []int32{id})
		if err != nil { // an id without a token, which the model can sample all the same
			return nil
		}
		return list[0]
	}
}

// checkTokens refuses to show the text of tokens that are not known.
func (h *handler) checkTokens(m *art.Model, s *wire.ChatSettings) error {
	if s.Logprobs && !s.ReturnTokensAsTokenIDs && h.tokenBytes(m) == nil {
		return wire.FieldError("logprobs", "is not supported here: the text of tokens is not known; "+
			"use return_token_ids or return_tokens_as_token_ids")
	}
	return nil
}

func render(ctx context.Context, m *art.Model, h *art.History, opts *art.ChatOptions) ([]int32, error) {
	if _, err := need[driver.Tokenizer](m, "art.Tokenizer"); err != nil {
		return nil, err
	}
	return m.Tokenize(ctx, h, opts)
}

// checkPromptLogprobs returns an error if a request asks for the logprobs of its prompt and the backend has not
// computed them.
func checkPromptLogprobs(asked bool, replies []*art.ChatResponse) error {
	if !asked || replies[0].PromptLogprobs != nil {
		return nil
	}
	e := refused(http.StatusNotImplemented, "not_implemented",
		"the request needs the logprobs of the prompt, which the backend of model %s does not compute", replies[0].Model)
	e.Param = "prompt_logprobs"
	return e
}
