package server

import (
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"os"
	"strings"

	"github.com/goart-dev/art/internal/wire"
)

// read reads the body of a request, which must be JSON.
func (h *handler) read(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	if !pinned(r.Context()) { // requests of this process do not come from a web page
		if err := checkContentType(r.Header.Get("Content-Type")); err != nil {
			return nil, err
		}
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, h.MaxBody))
	if err != nil {
		return nil, readError(err)
	}
	return body, checkDepth(body)
}

// checkContentType accepts JSON in UTF-8 only: a web page can send other types, or none, without a CORS preflight.
func checkContentType(header string) error {
	media, params, err := mime.ParseMediaType(header)
	charset := strings.ToLower(params["charset"])
	if err == nil && media == "application/json" && (charset == "" || charset == "utf-8" || charset == "us-ascii") {
		return nil
	}
	return &wire.Error{
		Status:  http.StatusUnsupportedMediaType,
		Message: fmt.Sprintf("the content type %s is not served; send application/json", wire.Quote(header)),
		Type:    wire.TypeInvalid,
		Code:    "unsupported_media_type",
	}
}

// readError converts the error of reading a body.
func readError(err error) error {
	var known *wire.Error
	if errors.As(err, &known) {
		return known
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return &wire.Error{
			Status:  http.StatusRequestTimeout,
			Message: "the body did not arrive in time",
			Type:    wire.TypeInvalid,
			Code:    "body_timeout",
		}
	}
	var tooLarge *http.MaxBytesError
	if !errors.As(err, &tooLarge) {
		return &wire.Error{
			Status:  http.StatusBadRequest,
			Message: "the body could not be read: " + err.Error(),
			Type:    wire.TypeInvalid,
		}
	}
	return &wire.Error{
		Status:  http.StatusRequestEntityTooLarge,
		Message: fmt.Sprintf("the body is larger than %d bytes", tooLarge.Limit),
		Type:    wire.TypeInvalid,
		Code:    "body_too_large",
	}
}
