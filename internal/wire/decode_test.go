package wire

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/goart-dev/art/internal/wire/wiretest"
)

var hello, list, withMessage = wiretest.Hello, wiretest.List, wiretest.WithMessage

// TestDecodeChatRequest_Refused checks that errors name the field that is invalid or not supported.
func TestDecodeChatRequest_Refused(t *testing.T) {
	cases := []struct{ body, param, message string }{
		{``, "", "not valid JSON"},
		{`{"model": "x"`, "", "not valid JSON"},
		{`[]`, "", "must be a JSON object, not array"},
		{`{}`, "messages", "must not be empty"},
		{hello(`} {`), "", "not valid JSON"},
		{`{"messages": [{"role": "narrator", "content": "x"}]}`, "messages[0].role", `"narrator"`},
		{`{"messages": [{"role": "user", "content": [{"type": "text", "text": "x"}, {"type": "image_url"}]}]}`,
			"messages[0].content[1]", "only text"},
		{`{"messages": "x"}`, "messages", "must be a list"},
		{hello(`, "messages": [{"role": "user", "content": "x"}, {"role": "user", "content": 5}]`), "messages[1]", "content is a number"},
		{hello(`, "tools": [{"type": "function"}]`), "tools[0]", "function is missing"},
		{withMessage(`"role": "user", "content": [` + list(1025, `{"type": "text", "text": "a"}`) + `]`), "messages[0].content", "has 1025 parts"},
		{withMessage(`"role": "assistant", "tool_calls": [` + list(1025, `{}`) + `]`), "messages[0].tool_calls", "has 1025 calls"},
		{hello(`, "stream_options": 5`), "stream_options", "must be an object, not number"},
		{hello(`, "tools": [{"type": "web_search"}]`), "tools[0].type", `only "function"`},
		{hello(`, "tools": [{"type": "function", "function": {"name": ""}}]`), "tools[0].function.name", "must not be empty"},
		{hello(`, "chat_template_kwargs": [1]`), "chat_template_kwargs", "must be an object"},
		{hello(`, "tool_choice": "any"`), "tool_choice", "must be"},
		{hello(`, "tool_choice": {"type": "function", "function": {}}`), "tool_choice", "with a name"},
		{hello(`, "tool_choice": {"type": "allowed_tools", "name": "f"}`), "tool_choice", "of type"},
		{hello(`, "parallel_tool_calls": false, "tool_choice": "required"`), "parallel_tool_calls", "only as true"},
		{hello(`, "temperature": "hot"`), "temperature", "must be a number, not string"},
		{hello(`, "temperature": -1`), "temperature", "negative"},
		{hello(`, "top_p": 0`), "top_p", "above 0"},
		{hello(`, "top_p": 1.5`), "top_p", "at most 1"},
		{hello(`, "top_k": -2`), "top_k", "-1"},
		{hello(`, "top_k": 1.5`), "top_k", "must be an integer"},
		{hello(`, "max_tokens": 0`), "max_tokens", "at least 1"},
		{hello(`, "max_completion_tokens": 0`), "max_completion_tokens", "at least 1"},
		{hello(`, "max_tokens": 1, "max_completion_tokens": 2`), "max_tokens", "send one of them"},
		{hello(`, "stop": 1`), "stop", "a string or a list of strings"},
		{hello(`, "stop": ["a", ""]`), "stop", "empty"},
		{hello(`, "stop": ["a", "b", "c", "d", "e"]`), "stop", "at most 4"},
		{hello(`, "seed": 0.5`), "seed", "integer"},
		{hello(`, "seed": 18446744073709551616`), "seed", "64 bits"},
		{hello(`, "logprobs": 3`), "logprobs", "true or false"},
		{hello(`, "logprobs": true, "top_logprobs": 21`), "top_logprobs", "between 0 and 20"},
		{hello(`, "top_logprobs": 2`), "top_logprobs", "needs logprobs"},
		{hello(`, "prompt_logprobs": -1`), "prompt_logprobs", "between 0 and 20"},
		{hello(`, "prompt_logprobs": 0, "stream": true`), "prompt_logprobs", "not supported in a stream"},
		{hello(`, "n": 0`), "n", "at least 1"},
		{hello(`, "n": 1e999`), "n", "must be an integer"},
		{hello(`, "response_format": {"type": "structural_tag"}`), "response_format.type", `is "structural_tag"`},
		{hello(`, "response_format": {"type": "json_schema", "json_schema": {"name": "n"}}`), "response_format", "no schema"},
		{hello(`, "response_format": {"type": "json_object"}, "structured_outputs": {"regex": "a"}`), "structured_outputs", "one of them"},
		{hello(`, "structured_outputs": {}`), "structured_outputs", "exactly one"},
		{hello(`, "structured_outputs": {"regex": "a", "choice": ["b"]}`), "structured_outputs", "exactly one"},
		{hello(`, "structured_outputs": {"regex": 1}`), "structured_outputs", "object"},
		{hello(`, "structured_outputs": {"grammar": "root ::= x"}`), "structured_outputs.grammar", "not supported"},
		{hello(`, "structured_outputs": {"regex": "a", "whitespace_pattern": " "}`), "structured_outputs.whitespace_pattern", "not supported"},
		{hello(`, "guided_json": {}`), "guided_json", "use structured_outputs"},
		{hello(`, "logit_bias": {"5": 100.5}`), "logit_bias", "of token 5 must be between -100 and 100"},
		{hello(`, "logit_bias": {"-5": 1}`), "logit_bias", "of token -5"},
		{hello(`, "logit_bias": {"x": 1}`), "logit_bias", "must be an object of numbers by token ids"},
		{hello(`, "logit_bias": {"4294967296": 1}`), "logit_bias", "must be an object of numbers by token ids"},
		{hello(`, "logit_bias": {"1": "2"}`), "logit_bias", "must be an object of numbers by token ids"},
		{hello(`, "logit_bias": [1]`), "logit_bias", "must be an object of numbers by token ids"},
		{hello(`, "frequency_penalty": 2.1`), "frequency_penalty", "between -2 and 2"},
		{hello(`, "presence_penalty": -2.1`), "presence_penalty", "between -2 and 2"},
		{hello(`, "repetition_penalty": 0`), "repetition_penalty", "above 0"},
		{hello(`, "min_p": 1.1`), "min_p", "between 0 and 1"},
		{hello(`, "min_tokens": -1`), "min_tokens", "negative"},
		{hello(`, "stop_token_ids": [1, -1]`), "stop_token_ids", "negative"},
		{hello(`, "stop_token_ids": [` + strings.Repeat("1,", 128) + `1]`), "stop_token_ids", "at most 128"},
		{hello(`, "guided_json": {}`), "guided_json", "not supported"},
		{hello(`, "functions": [{"name": "f"}]`), "functions", "use tools"},
		{hello(`, "parallel_tool_calls": false`), "parallel_tool_calls", "supported only as true"},
	}
	for _, c := range cases {
		t.Run(fmt.Sprintf("%.200s", c.body), func(t *testing.T) {
			_, err := DecodeChatRequest(t.Context(), []byte(c.body))
			var e *Error
			if !errors.As(err, &e) {
				t.Fatalf("got error %v", err)
			}
			if e.Status != http.StatusBadRequest || e.Type != TypeInvalid {
				t.Errorf("got status %d and type %q", e.Status, e.Type)
			}
			if e.Param != c.param || !strings.Contains(e.Message, c.message) {
				t.Errorf("got param %q, message %q; want %q, %q", e.Param, e.Message, c.param, c.message)
			}
		})
	}
}

// TestDecodeChatRequest_AllProblems checks that one error names all invalid fields.
func TestDecodeChatRequest_AllProblems(t *testing.T) {
	body := `{"messages": [], "n": 0, "temperature": -1, "top_p": 0, "stop": [""]}`
	_, err := DecodeChatRequest(t.Context(), []byte(body))
	if err == nil {
		t.Fatal("no error")
	}
	for _, field := range []string{"messages", "n ", "temperature", "top_p", "stop"} {
		if !strings.Contains(err.Error(), field) {
			t.Errorf("%q is not in %q", field, err)
		}
	}
}

// TestDecodeChatRequest_ManyProblems: an error lists at most 20 problems, and then says that there may be more.
func TestDecodeChatRequest_ManyProblems(t *testing.T) {
	for n, more := range map[int]bool{19: false, 20: true, 21: true, 1000: true} {
		_, err := DecodeChatRequest(t.Context(), []byte(hello(`, "tools": [`+list(n, `{}`)+`]`)))
		if err == nil {
			t.Fatal("no error")
		}
		listed := strings.Count(err.Error(), "tools[")
		if listed != min(n, maxListed) || strings.Contains(err.Error(), "more") != more {
			t.Errorf("%d problems: %d are listed in %s", n, listed, err)
		}
	}
}

// countdown is a context that is canceled after a number of calls of Err.
type countdown struct {
	context.Context
	left int
}

func (c *countdown) Err() error {
	if c.left--; c.left < 0 {
		return context.Canceled
	}
	return nil
}

// TestDecodeChatRequest_Canceled: decoding stops when the client disconnects.
func TestDecodeChatRequest_Canceled(t *testing.T) {
	for name, body := range map[string]string{
		"messages": `{"messages": [` + list(5000, `{"role": "user", "content": "a"}`) + `]}`,
		"tools":    hello(`, "tools": [` + list(5000, `{"type": "function", "function": {"name": "f"}}`) + `]`),
	} {
		ctx := &countdown{t.Context(), 10}
		if _, err := DecodeChatRequest(ctx, []byte(body)); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: error %v", name, err)
		}
		if ctx.left != -1 {
			t.Errorf("%s: Err was called %d times after the cancellation", name, -1-ctx.left)
		}
	}
}

// TestUnsupported_TableIsJSON checks that the neutral values are JSON: a typo would make requests fail.
func TestUnsupported_TableIsJSON(t *testing.T) {
	for name, accepted := range unsupported {
		for _, value := range accepted {
			if !json.Valid([]byte(value)) {
				t.Errorf("%s: %s is not JSON", name, value)
			}
		}
	}
}

// FuzzDecodeChatRequest checks that every body is either refused with a reason, or decoded to a request that is within
// the limits and survives a round trip.
func FuzzDecodeChatRequest(f *testing.F) {
	f.Add(hello(``))
	f.Add(hello(`, "stop": ["a"], "seed": -5, "top_k": -1, "tool_choice": "none", "stream": true`))
	f.Add(hello(`, "tools": [{"type": "function", "function": {"name": "f", "parameters": {}}}], "n": 1`))
	f.Add(`{"messages": [{"role": "assistant", "content": null, "tool_calls": []}, {"role": "tool", "content": []}]}`)
	f.Add(`{"messages": [null], "stop": null, "n": 1e999}`)
	f.Fuzz(func(t *testing.T, body string) {
		req, err := DecodeChatRequest(t.Context(), []byte(body))
		if err != nil {
			var e *Error
			if !errors.As(err, &e) || e.Status != http.StatusBadRequest || e.Message == "" {
				t.Fatalf("got %#v", err)
			}
			return
		}
		if len(req.Messages) == 0 || len(req.Stop) > maxStop || req.Temperature != nil && *req.Temperature < 0 {
			t.Fatalf("accepted %+v", req)
		}
		first, err := json.Marshal(req)
		if err != nil {
			t.Fatal(err)
		}
		again, err := DecodeChatRequest(t.Context(), first)
		if err != nil {
			t.Fatalf("%s: %v", first, err)
		}
		if second, _ := json.Marshal(again); string(second) != string(first) {
			t.Fatalf("wrote %s, then %s", first, second)
		}
	})
}
