package server

import (
	"fmt"
	"net/http"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/internal/wire"
)

// limit refuses a request for more replies, n to each prompt, or longer ones than the configuration allows. A reply
// whose length neither the request nor the model limits gets the longest.
func (h *handler) limit(m *art.Model, prompts, n int, opts *art.ChatOptions) error {
	if n > h.MaxChoices || prompts*n > h.MaxChoices {
		return wire.FieldError("n", "asks for %d replies to %d prompts; at most %d are served, of all prompts together",
			n, prompts, h.MaxChoices)
	}
	if h.MaxTokens == 0 {
		return nil
	}
	asked := m.Options().Chat.MaxTokens
	if opts.MaxTokens != nil {
		asked = opts.MaxTokens
		if *asked > h.MaxTokens {
			return wire.FieldError("max_tokens", "is %d; at most %d are served", *asked, h.MaxTokens)
		}
	}
	if asked == nil || *asked == 0 || *asked > h.MaxTokens {
		opts.MaxTokens = &h.MaxTokens
	}
	return nil
}

// maxDepth limits the nesting of the brackets of a body: schemas of tools are nested, and rendering them is recursive.
const maxDepth = 256

// checkDepth refuses a body that is nested too deeply. Whether it is JSON is found out later.
func checkDepth(body []byte) error {
	depth, quoted := 0, false
	for i := 0; i < len(body); i++ {
		switch c := body[i]; {
		case c == '"':
			quoted = !quoted
		case quoted && c == '\\':
			i++
		case quoted:
		case c == '{' || c == '[':
			if depth++; depth > maxDepth {
				return &wire.Error{
					Status:  http.StatusBadRequest,
					Message: fmt.Sprintf("the body is nested more than %d levels deep", maxDepth),
					Type:    wire.TypeInvalid,
					Code:    "too_deep",
				}
			}
		case c == '}' || c == ']':
			depth--
		}
	}
	return nil
}

// tooManyRequests is the error of a server that is busy.
func tooManyRequests(limit int64) *wire.Error {
	return &wire.Error{
		Status: http.StatusServiceUnavailable,
		Message: fmt.Sprintf("%d requests are being answered, or as many as this client's share of them; "+
			"try again, or raise MaxRequests of HandlerOptions", limit),
		Type:       wire.TypeInternal,
		Code:       "too_many_requests",
		RetryAfter: retryAfter,
	}
}
