package server

import (
	"net/http"
	"strings"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/internal/wire"
)

// messagesPath is the path of Anthropic's API. Its clients put it behind a base URL that has no /v1.
const messagesPath = "/v1/messages"

// isMessages reports whether a request is for Anthropic's API, whose errors have another form.
func isMessages(r *http.Request) bool {
	path := strings.TrimSuffix(r.URL.Path, "/count_tokens")
	return strings.HasSuffix(path, messagesPath)
}

// messages serves Anthropic's API.
func (h *handler) messages(w http.ResponseWriter, r *http.Request) error {
	req, err := h.readMessages(w, r, false)
	if err != nil {
		return err
	}
	m, r, err := h.model(r, req.Model, false)
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
	req, err := h.readMessages(w, r, true)
	if err != nil {
		return err
	}
	m, r, err := h.model(r, req.Model, false)
	if err != nil {
		return err
	}
	ids, err := render(r.Context(), m, req.History(), req.Options())
	if err != nil {
		return err
	}
	return sendJSON(w, http.StatusOK, wire.TokenCount{InputTokens: len(ids)})
}

// readMessages reads the body of a request.
func (h *handler) readMessages(w http.ResponseWriter, r *http.Request, counting bool) (*wire.MessagesRequest, error) {
	body, err := h.read(w, r)
	if err != nil {
		return nil, err
	}
	return wire.DecodeMessagesRequest(r.Context(), body, counting)
}
