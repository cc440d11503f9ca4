package openai

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
)

// DecodeRequest reads the body of a chat completions request and checks it. The error is an [*Error] with status 400
// that lists what is wrong, up to [maxListed] problems, or that of ctx, whose end it notices on the way. The work is
// linear in the size of the body.
func DecodeRequest(ctx context.Context, body []byte) (*Request, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(body, &fields); err != nil {
		return nil, decodeError(err)
	}
	var p problemList
	checkUnsupported(&p, fields)
	req := new(Request)
	if err := json.Unmarshal(body, &req.Settings); err != nil {
		p.add(decodeError(err))
	} else {
		req.Settings.validate(&p)
	}
	if err := req.decodeInput(ctx, &p, fields); err != nil {
		return nil, err
	}
	if err := p.err(); err != nil {
		return nil, err
	}
	return req, nil
}

// decodeInput decodes what the prompt is made of.
func (r *Request) decodeInput(ctx context.Context, p *problemList, fields map[string]json.RawMessage) (err error) {
	before := len(p.listed)
	if r.Messages, err = decodeMessages(ctx, p, fields["messages"]); err != nil {
		return err
	}
	p.require(len(r.Messages) > 0 || len(p.listed) > before, "messages", "must not be empty")
	r.Tools, err = decodeTools(ctx, p, fields["tools"])
	return err
}

// decodeError says what is wrong with JSON.
func decodeError(err error) *Error {
	var known *Error
	if errors.As(err, &known) {
		return known
	}
	var kind *json.UnmarshalTypeError
	if errors.As(err, &kind) && kind.Field != "" {
		return fieldError(kind.Field, "must be %s, not %s", kindName(kind.Type.String()), beginning(kind.Value))
	}
	message := fmt.Sprintf("the body is not a chat completions request: %v", err)
	var syntax *json.SyntaxError
	switch {
	case errors.As(err, &syntax):
		message = fmt.Sprintf("the body is not valid JSON: %v (at byte %d)", err, syntax.Offset)
	case kind != nil:
		message = fmt.Sprintf("the body must be a JSON object, not %s", beginning(kind.Value))
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
