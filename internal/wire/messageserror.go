package wire

import (
	"encoding/json"
	"net/http"
)

// MessagesError is an error in the form of Anthropic's API.
type MessagesError struct{ *Error }

// messagesErrorTypes are the types of errors that Anthropic's clients tell apart, by status.
var messagesErrorTypes = map[int]string{
	http.StatusUnauthorized:          "authentication_error",
	http.StatusForbidden:             "permission_error",
	http.StatusNotFound:              "not_found_error",
	http.StatusRequestEntityTooLarge: "request_too_large",
	http.StatusTooManyRequests:       "rate_limit_error",
	http.StatusServiceUnavailable:    "overloaded_error",
	http.StatusGatewayTimeout:        "gateway_timeout_error",
}

// MarshalJSON writes {"type": "error", "error": {"type", "message"}}.
func (e MessagesError) MarshalJSON() ([]byte, error) {
	kind := messagesErrorTypes[e.Status]
	switch {
	case kind != "":
	case e.Status >= http.StatusInternalServerError:
		kind = "api_error"
	default:
		kind = TypeInvalid
	}
	return json.Marshal(map[string]any{"type": "error", "error": map[string]string{"type": kind, "message": e.Message}})
}
