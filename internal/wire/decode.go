package wire

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
)

// DecodeChatRequest decodes the body of a chat completions request and validates it. The error is an [*Error] with
// status 400 that lists what is wrong, up to 20 problems, or that of ctx, which is checked while decoding. The work is
// linear in the size of the body.
func DecodeChatRequest(ctx context.Context, body []byte) (*ChatRequest, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(body, &fields); err != nil {
		return nil, decodeError(err)
	}
	var p problemList
	allowOneCall(fields)
	unsupported.check(&p, fields)
	req := new(ChatRequest)
	if err := json.Unmarshal(body, &req.ChatSettings); err != nil {
		p.add(decodeError(err))
	} else {
		req.ChatSettings.validate(&p)
	}
	if err := req.decodeInput(ctx, &p, fields); err != nil {
		return nil, err
	}
	if err := p.err(); err != nil {
		return nil, err
	}
	return req, nil
}

// decodeInput decodes the messages and the tools.
func (r *ChatRequest) decodeInput(ctx context.Context, p *problemList, fields map[string]json.RawMessage) (err error) {
	before := len(p.listed)
	if r.Messages, err = decodeMessages(ctx, p, fields["messages"]); err != nil {
		return err
	}
	p.require(len(r.Messages) > 0 || len(p.listed) > before, "messages", "must not be empty")
	r.Tools, err = decodeTools(ctx, p, fields["tools"])
	return err
}

// decodeError converts an error of encoding/json.
func decodeError(err error) *Error {
	var known *Error
	if errors.As(err, &known) {
		return known
	}
	var kind *json.UnmarshalTypeError
	if errors.As(err, &kind) && kind.Field != "" {
		return FieldError(kind.Field, "must be %s, not %s", kindName(kind.Type.String()), beginning(kind.Value))
	}
	message := fmt.Sprintf("the body is not a request: %v", err)
	var syntax *json.SyntaxError
	switch {
	case errors.As(err, &syntax):
		message = fmt.Sprintf("the body is not valid JSON: %v (at byte %d)", err, syntax.Offset)
	case kind != nil:
		message = fmt.Sprintf("the body must be a JSON object, not %s", beginning(kind.Value))
	}
	return &Error{Status: http.StatusBadRequest, Message: message, Type: TypeInvalid}
}

// kindName returns the JSON name of a Go type.
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
