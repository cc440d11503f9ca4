package openai

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"

	"github.com/goart-dev/art"
)

// The types of errors that OpenAI's clients tell apart.
const (
	typeInvalid  = "invalid_request_error"
	typeInternal = "server_error"
)

// statusClientClosed is what nginx made the common word for "the client went away before the answer".
const statusClientClosed = 499

// Error is the body of a response that is not a success, and its status.
type Error struct {
	Status  int
	Message string
	Type    string
	Param   string // the field of the request; "" is null on the wire
	Code    string // a word for programs; "" is null on the wire
	// RetryAfter is when the same request may succeed, in seconds, a header of the response; 0 is not known.
	RetryAfter int
}

// Error returns the message.
func (e *Error) Error() string { return e.Message }

// MarshalJSON writes OpenAI's form, {"error": {"message", "type", "param", "code"}}. The status is not part of it.
func (e *Error) MarshalJSON() ([]byte, error) {
	type body struct {
		Message string  `json:"message"`
		Type    string  `json:"type"`
		Param   *string `json:"param"`
		Code    *string `json:"code"`
	}
	return json.Marshal(map[string]body{"error": {e.Message, e.Type, orNull(e.Param), orNull(e.Code)}})
}

// orNull returns nil for an empty string.
func orNull(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// asError gives any error its status.
func asError(err error) *Error {
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	e = &Error{Message: err.Error(), Type: typeInvalid}
	switch {
	case errors.Is(err, art.ErrContextLength):
		e.Status, e.Param, e.Code = http.StatusBadRequest, "messages", "context_length_exceeded"
	case errors.Is(err, art.ErrInvalid):
		e.Status = http.StatusBadRequest
	case errors.Is(err, art.ErrUnsupported):
		e.Status, e.Code = http.StatusBadRequest, "unsupported"
	case errors.Is(err, art.ErrNotRegistered):
		e.Status, e.Param, e.Code = http.StatusNotFound, "model", "model_not_found"
	case errors.Is(err, art.ErrClosed):
		e.Status, e.Type, e.Code = http.StatusServiceUnavailable, typeInternal, "backend_closed"
	case errors.Is(err, context.Canceled):
		e.Status, e.Code = statusClientClosed, "canceled"
	case errors.Is(err, context.DeadlineExceeded):
		e.Status, e.Type, e.Code = http.StatusGatewayTimeout, typeInternal, "timeout"
	default:
		e.Status, e.Type = http.StatusInternalServerError, typeInternal
	}
	return e
}
