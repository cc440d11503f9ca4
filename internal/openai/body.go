package openai

import (
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"os"
	"strings"
)

// read reads and checks the body of a chat completions request.
func (h *handler) read(w http.ResponseWriter, r *http.Request) (*Request, error) {
	if !pinned(r.Context()) { // those of this process come from no web page
		if err := checkContentType(r.Header.Get("Content-Type")); err != nil {
			return nil, err
		}
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, h.MaxBody))
	if err != nil {
		return nil, readError(err)
	}
	req, err := DecodeRequest(r.Context(), body)
	if err != nil {
		return nil, err
	}
	if req.Logprobs && h.Tokens == nil {
		return nil, fieldError("logprobs", "is not supported here: the text of tokens is not known; use return_token_ids")
	}
	return req, nil
}

// checkContentType refuses all but JSON, which is UTF-8: a web page can send other types, and none, without asking.
func checkContentType(header string) error {
	media, params, err := mime.ParseMediaType(header)
	charset := strings.ToLower(params["charset"])
	if err == nil && media == "application/json" && (charset == "" || charset == "utf-8" || charset == "us-ascii") {
		return nil
	}
	return &Error{
		Status:  http.StatusUnsupportedMediaType,
		Message: fmt.Sprintf("the content type %s is not served; send application/json", quoted(header)),
		Type:    typeInvalid,
		Code:    "unsupported_media_type",
	}
}

// readError gives the error of a body its status.
func readError(err error) error {
	var known *Error
	if errors.As(err, &known) {
		return known
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return &Error{
			Status:  http.StatusRequestTimeout,
			Message: "the body did not arrive in time",
			Type:    typeInvalid,
			Code:    "body_timeout",
		}
	}
	var tooLarge *http.MaxBytesError
	if !errors.As(err, &tooLarge) {
		return &Error{Status: http.StatusBadRequest, Message: "the body could not be read: " + err.Error(), Type: typeInvalid}
	}
	return &Error{
		Status:  http.StatusRequestEntityTooLarge,
		Message: fmt.Sprintf("the body is larger than %d bytes", tooLarge.Limit),
		Type:    typeInvalid,
		Code:    "body_too_large",
	}
}
