package openai

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
)

// DecodeRequest reads the body of a chat completions request and checks it. The error is an [*Error] with status 400
// that lists every problem.
func DecodeRequest(body []byte) (*Request, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(body, &fields); err != nil {
		return nil, decodeError(err)
	}
	problems := checkUnsupported(fields)
	problems = append(problems, checkParts(fields["messages"])...)
	problems = append(problems, checkToolTypes(fields["tools"])...)
	req := new(Request)
	if err := json.Unmarshal(body, req); err != nil {
		return nil, joinErrors(append(problems, decodeError(err)))
	}
	if problems = append(problems, req.validate()...); len(problems) > 0 {
		return nil, joinErrors(problems)
	}
	return req, nil
}

// decodeError says what is wrong with JSON.
func decodeError(err error) *Error {
	var known *Error
	if errors.As(err, &known) {
		return known
	}
	var kind *json.UnmarshalTypeError
	if errors.As(err, &kind) && kind.Field != "" {
		return fieldError(kind.Field, "must be %s, not %s", kindName(kind.Type.String()), kind.Value)
	}
	message := fmt.Sprintf("the body is not a chat completions request: %v", err)
	var syntax *json.SyntaxError
	switch {
	case errors.As(err, &syntax):
		message = fmt.Sprintf("the body is not valid JSON: %v (at byte %d)", err, syntax.Offset)
	case kind != nil:
		message = fmt.Sprintf("the body must be a JSON object, not %s", kind.Value)
	}
	return &Error{Status: http.StatusBadRequest, Message: message, Type: typeInvalid}
}

// kindName is the JSON word for a Go type.
func kindName(goType string) string {
	switch {
	case strings.Contains(goType, "int"):
		return "an integer"
	case strings.Contains(goType, "float"):
		return "a number"
	case strings.Contains(goType, "bool"):
		return "true or false"
	case strings.HasSuffix(goType, "string"):
		return "a string"
	}
	return "an object"
}

// joinErrors makes one error of at least one problem: all messages, and the field and code of the first.
func joinErrors(problems []*Error) *Error {
	joined := *problems[0]
	for _, p := range problems[1:] {
		joined.Message += "; " + p.Message
	}
	return &joined
}
