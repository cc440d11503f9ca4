package server

import (
	"errors"
	"io"
	"mime"
	"net/http"
	"os"
	"slices"
	"strings"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/internal/wire"
)

// read reads the body of a request, which must be JSON.
func (h *handler) read(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	if !pinned(r.Context()) { // requests of this process do not come from a web page
		// JSON in UTF-8 only: a web page can send other types, or none, without a CORS preflight.
		header := r.Header.Get("Content-Type")
		media, params, err := mime.ParseMediaType(header)
		charset := strings.ToLower(params["charset"])
		if err != nil || media != "application/json" || !slices.Contains([]string{"", "utf-8", "us-ascii"}, charset) {
			return nil, refused(http.StatusUnsupportedMediaType, "unsupported_media_type",
				"the content type %s is not served; send application/json", wire.Quote(header))
		}
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, h.MaxBody))
	if err != nil {
		return nil, readError(err)
	}
	return body, checkDepth(body)
}

func readError(err error) error {
	var known *wire.Error
	if errors.As(err, &known) {
		return known
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return refused(http.StatusRequestTimeout, "body_timeout", "the body did not arrive in time")
	}
	var tooLarge *http.MaxBytesError
	if !errors.As(err, &tooLarge) {
		return refused(http.StatusBadRequest, "", "the body could not be read: %v", err)
	}
	return refused(http.StatusRequestEntityTooLarge, "body_too_large",
		"the body is larger than %d bytes", tooLarge.Limit)
}

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
				return refused(http.StatusBadRequest, "too_deep", "the body is nested more than %d levels deep", maxDepth)
			}
		case c == '}' || c == ']':
			depth--
		}
	}
	return nil
}
