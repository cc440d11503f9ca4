package wire

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/goart-dev/art"
)

// maxListed limits the problems that an error lists.
const maxListed = 20

// problemList collects what is wrong with a request, up to maxListed problems: a request can have millions.
type problemList struct {
	listed []*Error
	more   bool // some are not listed
}

func (p *problemList) add(problem *Error) {
	if p.full() {
		p.more = true
		return
	}
	p.listed = append(p.listed, problem)
}

// require adds a problem unless ok.
func (p *problemList) require(ok bool, field, format string, args ...any) {
	if !ok {
		p.add(FieldError(field, format, args...))
	}
}

// full reports whether further problems would not be listed, so that there is no need to find them.
func (p *problemList) full() bool { return len(p.listed) == maxListed }

// err joins the messages of all problems, with the field and the code of the first. It is nil if there is none.
func (p *problemList) err() error {
	if len(p.listed) == 0 {
		return nil
	}
	messages := make([]string, len(p.listed))
	for i, problem := range p.listed {
		messages[i] = problem.Message
	}
	if p.full() || p.more {
		messages = append(messages, "there may be more")
	}
	joined := *p.listed[0]
	joined.Message = strings.Join(messages, "; ")
	return &joined
}

// maxQuoted limits the bytes of a client's text that an error repeats.
const maxQuoted = 64

// beginning truncates a text to maxQuoted bytes.
func beginning(s string) string {
	if len(s) <= maxQuoted {
		return s
	}
	return strings.ToValidUTF8(s[:maxQuoted], "") + "..."
}

// Quote quotes a client's text in an error message, truncated if it is long.
func Quote[S ~string](s S) string {
	return strconv.Quote(beginning(string(s)))
}

// fieldTable lists the fields of an API that would change the reply and are not supported, each with its neutral values
// in JSON. null is neutral for all of them.
type fieldTable map[string][]string

// unsupported are those of chat completions.
var unsupported = fieldTable{
	// OpenAI's.
	"audio":               nil,
	"function_call":       {`"auto"`, `"none"`},
	"functions":           {"[]"},
	"modalities":          {`["text"]`},
	"moderation":          nil,
	"parallel_tool_calls": {"true"},
	"reasoning_effort":    nil,
	"verbosity":           {`"medium"`},
	"web_search_options":  nil,
	// vLLM's.
	"add_generation_prompt":      {"true"},
	"add_special_tokens":         {"false"},
	"best_of":                    {"1"},
	"chat_template":              nil,
	"continue_final_message":     {"false"},
	"documents":                  {"[]"},
	"echo":                       {"false"},
	"guided_choice":              nil,
	"guided_grammar":             nil,
	"guided_json":                nil,
	"guided_regex":               nil,
	"include_reasoning":          {"true"},
	"include_stop_str_in_output": {"false"},
	"length_penalty":             {"1"},
	"logits_processors":          {"[]"},
	"logprob_token_ids":          {"[]"},
	"mm_processor_kwargs":        {"{}"},
	"return_prompt_text":         {"false"},
	"skip_special_tokens":        {"true"},
	"thinking_token_budget":      nil,
	"truncate_prompt_tokens":     nil,
	"use_beam_search":            {"false"},
	"vllm_xargs":                 {"{}"},
}

// hints say what to use instead of some of the fields.
var hints = map[string]string{
	"functions":     "use tools",
	"function_call": "use tool_choice",
	"guided_choice": "use structured_outputs",
	"guided_json":   "use structured_outputs",
	"guided_regex":  "use structured_outputs",
}

// check finds the unsupported fields whose value is not neutral, in the order of their names.
func (t fieldTable) check(p *problemList, fields map[string]json.RawMessage) {
	for _, name := range slices.Sorted(maps.Keys(t)) {
		value, set := fields[name]
		if set && !isNeutral(value, t[name]) {
			message := "is not supported"
			if len(t[name]) > 0 {
				message = "is supported only as " + strings.Join(t[name], " or ")
			}
			e := FieldError(name, "%s; %s", message, cmp.Or(hints[name], "leave it out"))
			e.Code = "unsupported_parameter"
			p.add(e)
		}
	}
}

// maxNeutral limits the length of a neutral value, white space included.
const maxNeutral = 1 << 10

// isNeutral reports whether a value is null or equals an accepted one as a JSON value: 0.0 is 0.
func isNeutral(value json.RawMessage, accepted []string) bool {
	var got any
	if len(value) > maxNeutral || json.Unmarshal(value, &got) != nil {
		return false // for example a number out of range
	}
	return got == nil || slices.ContainsFunc(accepted, func(a string) bool {
		var want any
		return json.Unmarshal([]byte(a), &want) == nil && reflect.DeepEqual(got, want)
	})
}

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
