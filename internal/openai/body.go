package openai

import (
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
)

// read reads and checks the body of a chat completions request.
func (h *handler) read(w http.ResponseWriter, r *http.Request) (*Request, error) {
	if err := checkContentType(r.Header.Get("Content-Type")); err != nil {
		return nil, err
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

// checkContentType refuses what a web page can send without asking: form fields and plain text. Any name with json in
// it passes, and so does none.
func checkContentType(header string) error {
	media, _, _ := mime.ParseMediaType(header)
	if header == "" || strings.Contains(media, "json") {
		return nil
	}
	return &Error{
		Status:  http.StatusUnsupportedMediaType,
		Message: fmt.Sprintf("the content type %q is not served; send application/json", header),
		Type:    typeInvalid,
		Code:    "unsupported_media_type",
	}
}

// readError gives the error of a body its status.
func readError(err error) error {
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
