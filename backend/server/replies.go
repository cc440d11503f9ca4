package server

import (
	"context"
	"net/http"
	"strings"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/driver"
	"github.com/goart-dev/art/internal/wire"
)

// readRequest reads a request, and returns it with the model that it names and, if it names a step, with a context that
// pins the step. one allows requests without a name when there is one model.
func readRequest[T interface{ ModelName() string }](
	h *handler, w http.ResponseWriter, r *http.Request, decode func(context.Context, []byte) (T, error), one bool,
) (req T, m *art.Model, pinned *http.Request, err error) {
	body, err := h.read(w, r)
	if err == nil {
		req, err = decode(r.Context(), body)
	}
	if err == nil {
		m, pinned, err = h.model(r, req.ModelName(), one)
	}
	return req, m, pinned, err
}

// complete serves chat completions.
func (h *handler) complete(w http.ResponseWriter, r *http.Request) error {
	req, m, r, err := readRequest(h, w, r, wire.DecodeChatRequest, false)
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

func chat(m *art.Model, history *art.History, n int, opts *art.ChatOptions) completion {
	return func(ctx context.Context, piece func(art.ChoicePiece) error) ([]*art.ChatResponse, error) {
		if piece == nil {
			return m.CompleteN(ctx, history, n, opts)
		}
		return m.StreamN(ctx, history, n, opts, piece)
	}
}

// completions serves OpenAI's older API: a text, or token ids, is continued.
func (h *handler) completions(w http.ResponseWriter, r *http.Request) error {
	req, m, r, err := readRequest(h, w, r, wire.DecodeCompletionRequest, false)
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

func sample(m *art.Model, prompts [][]int32, n int, opts *art.ChatOptions) completion {
	return func(ctx context.Context, piece func(art.ChoicePiece) error) ([]*art.ChatResponse, error) {
		return m.SampleN(ctx, prompts, n, opts, piece)
	}
}

// generate serves vLLM's API of token ids in and out.
func (h *handler) generate(w http.ResponseWriter, r *http.Request) error {
	req, m, r, err := readRequest(h, w, r, wire.DecodeGenerateRequest, true)
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

// responses serves OpenAI's Responses API. Responses are not stored.
func (h *handler) responses(w http.ResponseWriter, r *http.Request) error {
	req, m, r, err := readRequest(h, w, r, wire.DecodeResponsesRequest, false)
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

// messagesPath is the path of Anthropic's API. Its clients put it behind a base URL that has no /v1.
const messagesPath = "/v1/messages"

// isMessages reports whether a request is for Anthropic's API, whose errors have another form.
func isMessages(r *http.Request) bool {
	path := strings.TrimSuffix(r.URL.Path, "/count_tokens")
	return strings.HasSuffix(path, messagesPath)
}

// messages serves Anthropic's API.
func (h *handler) messages(w http.ResponseWriter, r *http.Request) error {
	req, m, r, err := readRequest(h, w, r, wire.DecodeMessagesRequest, false)
	if err != nil {
		return err
	}
	stopped := func(reply *art.ChatResponse) string {
		return wire.MatchedStop(reply, req.StopSequences, h.tokenBytes(m))
	}
	opts := req.Options()
	if err := h.limit(m, 1, 1, opts); err != nil {
		return err
	}
	a := answer{model: m, n: 1, ask: chat(m, req.History(), 1, opts)}
	if req.Stream {
		a.stream = wire.NewMessagesStream(stopped)
	}
	a.body = func(replies []*art.ChatResponse) (any, error) {
		return wire.NewMessagesResponse(replies[0], stopped(replies[0])), nil
	}
	return h.answer(w, r, &a)
}

// countTokens serves the number of tokens of a prompt.
func (h *handler) countTokens(w http.ResponseWriter, r *http.Request) error {
	req, m, r, err := readRequest(h, w, r, wire.DecodeCountRequest, false)
	if err != nil {
		return err
	}
	ids, err := render(r.Context(), m, req.History(), req.Options())
	if err != nil {
		return err
	}
	return sendJSON(w, http.StatusOK, wire.TokenCount{InputTokens: len(ids)})
}
