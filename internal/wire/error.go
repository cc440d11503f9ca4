package wire

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"

	"github.com/goart-dev/art"
)

// The values of [Error].Type that OpenAI's clients tell apart.
const (
	TypeInvalid  = "invalid_request_error"
	TypeInternal = "server_error"
)

// statusClientClosed is nginx's status for a client that closed its connection before the response.
const statusClientClosed = 499

// Error is the body of an error response, and its status.
type Error struct {
	Status  int
	Message string
	Type    string
	Param   string // the field of the request; "" is null on the wire
	Code    string // machine-readable; "" is null on the wire
	// RetryAfter is the header of that name, in seconds; 0 leaves it out.
	RetryAfter int
}

// Error returns the message.
func (e *Error) Error() string { return e.Message }

// MarshalJSON writes OpenAI's form, {"error": {"message", "type", "param", "code"}}, which has no status.
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

// AsError converts an error of package art to a status and a code. Other errors have status 500.
func AsError(err error) *Error {
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	e = &Error{Message: err.Error(), Type: TypeInvalid}
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
		e.Status, e.Type, e.Code = http.StatusServiceUnavailable, TypeInternal, "backend_closed"
	case errors.Is(err, art.ErrBusy):
		e.Status, e.Type, e.Code = http.StatusTooManyRequests, TypeInternal, "too_many_requests"
	case errors.Is(err, art.ErrRecordingEnded):
		e.Status, e.Code = http.StatusGone, "rollout_closed"
	case errors.Is(err, context.Canceled):
		e.Status, e.Code = statusClientClosed, "canceled"
	case errors.Is(err, context.DeadlineExceeded):
		e.Status, e.Type, e.Code = http.StatusGatewayTimeout, TypeInternal, "timeout"
	default:
		e.Status, e.Type = http.StatusInternalServerError, TypeInternal
	}
	return e
}
