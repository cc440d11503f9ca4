package openai

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"github.com/goart-dev/art"
)

// TestDecodeRequest_Settings checks that every field that shapes the reply reaches the backend.
func TestDecodeRequest_Settings(t *testing.T) {
	defaults := art.Sampling{Temperature: 1, TopP: 1, Seed: 1}
	with := func(change func(*art.Sampling)) art.Sampling {
		s := defaults
		change(&s)
		return s
	}
	cases := []struct {
		fields string
		want   art.Sampling
	}{
		{``, defaults},
		{`, "temperature": 0, "top_p": 0.5`, with(func(s *art.Sampling) { s.Temperature, s.TopP = 0, 0.5 })},
		{`, "top_k": 40`, with(func(s *art.Sampling) { s.TopK = 40 })},
		{`, "top_k": -1`, defaults},
		{`, "max_tokens": 9`, with(func(s *art.Sampling) { s.MaxTokens = 9 })},
		{`, "max_completion_tokens": 8`, with(func(s *art.Sampling) { s.MaxTokens = 8 })},
		{`, "max_tokens": 8, "max_completion_tokens": 8`, with(func(s *art.Sampling) { s.MaxTokens = 8 })},
		{`, "stop": "END"`, with(func(s *art.Sampling) { s.Stop = []string{"END"} })},
		{`, "stop": ["a", "b"]`, with(func(s *art.Sampling) { s.Stop = []string{"a", "b"} })},
		{`, "seed": 18446744073709551615`, with(func(s *art.Sampling) { s.Seed = 1<<64 - 1 })},
		{`, "seed": -1`, with(func(s *art.Sampling) { s.Seed = 1<<64 - 1 })},
		{`, "temperature": null, "stop": null, "max_tokens": null, "n": null, "logit_bias": null, "tool_choice": null`, defaults},
		{`, "n": 1, "presence_penalty": 0.0, "logit_bias": {}, "response_format": {"type": "text"}`, defaults},
		{`, "user": "u", "metadata": {"a": "b"}, "store": true, "service_tier": "auto", "something_new": [1]`, defaults},
	}
	for _, c := range cases {
		t.Run(c.fields, func(t *testing.T) {
			b := reply(art.Message{Content: "Hi"})
			fields := c.fields
			if !strings.Contains(fields, `"seed"`) {
				fields += `, "seed": 1`
			}
			if w := post(newHandler(t, b), hello(fields)); w.Code != http.StatusOK {
				t.Fatalf("status %d: %s", w.Code, w.Body)
			}
			if got := b.last.Settings; !reflect.DeepEqual(got, c.want) {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
}

// TestDecodeRequest_TemplateArgs: vLLM's name for variables of the chat template.
func TestDecodeRequest_TemplateArgs(t *testing.T) {
	for fields, want := range map[string]string{
		``:                               "",
		`, "chat_template_kwargs": null`: "",
		`, "chat_template_kwargs": {}`:   "",
		`, "chat_template_kwargs": {"enable_thinking": false, "documents": [{"b": 1, "a": 2}]}`: `{"documents":[{"b":1,"a":2}],"enable_thinking":false}`,
	} {
		b := reply(art.Message{Content: "Hi"})
		if w := post(newHandler(t, b), hello(fields)); w.Code != http.StatusOK {
			t.Fatalf("status %d: %s", w.Code, w.Body)
		}
		if got := string(b.last.TemplateArgs); got != want {
			t.Errorf("%s: got %s, want %s", fields, got, want)
		}
	}
}

// TestDecodeRequest_Refused checks that what is not supported is refused by name.
func TestDecodeRequest_Refused(t *testing.T) {
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
		{hello(`, "tool_choice": "required"`), "tool_choice", "not supported"},
		{hello(`, "tool_choice": {"type": "function", "function": {"name": "f"}}`), "tool_choice", "not supported"},
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
		{hello(`, "logprobs": true, "top_logprobs": 2`), "top_logprobs", "must be 0"},
		{hello(`, "n": 2`), "n", "send the request n times"},
		{hello(`, "n": 1e999`), "n", "supported only as 1"},
		{hello(`, "response_format": {"type": "json_object"}`), "response_format", "in the prompt"},
		{hello(`, "logit_bias": {"5": 1}`), "logit_bias", "supported only as {}"},
		{hello(`, "frequency_penalty": 0.1`), "frequency_penalty", "supported only as 0"},
		{hello(`, "presence_penalty": 0.1`), "presence_penalty", "supported only as 0"},
		{hello(`, "guided_json": {}`), "guided_json", "not supported"},
		{hello(`, "functions": [{"name": "f"}]`), "functions", "use tools"},
		{hello(`, "parallel_tool_calls": false`), "parallel_tool_calls", "supported only as true"},
	}
	for _, c := range cases {
		t.Run(fmt.Sprintf("%.200s", c.body), func(t *testing.T) {
			_, err := DecodeRequest(t.Context(), []byte(c.body))
			var e *Error
			if !errors.As(err, &e) {
				t.Fatalf("got error %v", err)
			}
			if e.Status != http.StatusBadRequest || e.Type != typeInvalid {
				t.Errorf("got status %d and type %q", e.Status, e.Type)
			}
			if e.Param != c.param || !strings.Contains(e.Message, c.message) {
				t.Errorf("got param %q, message %q; want %q, %q", e.Param, e.Message, c.param, c.message)
			}
		})
	}
}

// TestDecodeRequest_AllProblems checks that one answer names everything that is wrong.
func TestDecodeRequest_AllProblems(t *testing.T) {
	_, err := DecodeRequest(t.Context(), []byte(`{"messages": [], "n": 2, "temperature": -1, "top_p": 0, "stop": [""]}`))
	if err == nil {
		t.Fatal("no error")
	}
	for _, field := range []string{"messages", "n ", "temperature", "top_p", "stop"} {
		if !strings.Contains(err.Error(), field) {
			t.Errorf("%q is not in %q", field, err)
		}
	}
}

// TestDecodeRequest_ManyProblems: an answer lists 20 problems, and says that it may not be all.
func TestDecodeRequest_ManyProblems(t *testing.T) {
	for n, more := range map[int]bool{19: false, 20: true, 21: true, 1000: true} {
		_, err := DecodeRequest(t.Context(), []byte(hello(`, "tools": [`+list(n, `{}`)+`]`)))
		if err == nil {
			t.Fatal("no error")
		}
		if listed := strings.Count(err.Error(), "tools["); listed != min(n, maxListed) || strings.Contains(err.Error(), "more") != more {
			t.Errorf("%d problems: %d are listed in %s", n, listed, err)
		}
	}
}

// countdown is a context that ends when it is asked for the n-th time.
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

// TestDecodeRequest_Canceled: a request of 300 KB was worked on for 50 s after its client had gone.
func TestDecodeRequest_Canceled(t *testing.T) {
	for name, body := range map[string]string{
		"messages": `{"messages": [` + list(5000, `{"role": "user", "content": "a"}`) + `]}`,
		"tools":    hello(`, "tools": [` + list(5000, `{"type": "function", "function": {"name": "f"}}`) + `]`),
	} {
		ctx := &countdown{t.Context(), 10}
		if _, err := DecodeRequest(ctx, []byte(body)); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: error %v", name, err)
		}
		if ctx.left != -1 {
			t.Errorf("%s: the context was asked %d times after its end", name, -1-ctx.left)
		}
	}
}

// TestUnsupported_TableIsJSON checks the accepted values of the table: a typo there would refuse what is fine.
func TestUnsupported_TableIsJSON(t *testing.T) {
	for name, accepted := range unsupported {
		for _, value := range accepted {
			if !json.Valid([]byte(value)) {
				t.Errorf("%s: %s is not JSON", name, value)
			}
		}
	}
}

// TestDecodeRequest_HistoryKept checks that what a client sends back reaches the backend with its tools, and that
// tool_choice "none" hides them.
func TestDecodeRequest_HistoryKept(t *testing.T) {
	body := `{"model": "player", "tools": [{"type": "function", "function": {"name": "look", "parameters": {"z": 1, "a": 2}}}],
		"messages": [
			{"role": "user", "content": "Look"},
			{"role": "assistant", "content": null, "tool_calls": [
				{"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{\"at\": 1}"}}]},
			{"role": "tool", "tool_call_id": "c1", "content": [{"type": "text", "text": "a "}, {"type": "text", "text": "wall"}]}]`
	b := reply(art.Message{Content: "A wall."})
	h := newHandler(t, b)
	if w := post(h, body+`, "tool_choice": "auto"}`); w.Code != http.StatusOK {
		t.Fatalf("status %d: %s", w.Code, w.Body)
	}
	if got := b.last.Tools; len(got) != 1 || got[0].Name != "look" || !strings.Contains(string(got[0].Parameters), `"z":1,"a":2`) {
		t.Errorf("tools are %+v", got)
	}
	m := b.last.Messages
	if len(m) != 3 || m[1].ToolCalls[0].Arguments != `{"at": 1}` || m[2].ToolCallID != "c1" || m[2].Content != "a wall" {
		t.Errorf("messages are %+v", m)
	}
	if w := post(h, body+`, "tool_choice": "none"}`); w.Code != http.StatusOK || len(b.last.Tools) != 0 {
		t.Errorf("tool_choice none: status %d, tools %+v", w.Code, b.last.Tools)
	}
}

// FuzzDecodeRequest checks that any body is either refused with a reason, or read into a request that is within its
// limits and that reads the same when it is written again.
func FuzzDecodeRequest(f *testing.F) {
	f.Add(hello(``))
	f.Add(hello(`, "stop": ["a"], "seed": -5, "top_k": -1, "tool_choice": "none", "stream": true`))
	f.Add(hello(`, "tools": [{"type": "function", "function": {"name": "f", "parameters": {}}}], "n": 1`))
	f.Add(`{"messages": [{"role": "assistant", "content": null, "tool_calls": []}, {"role": "tool", "content": []}]}`)
	f.Add(`{"messages": [null], "stop": null, "n": 1e999}`)
	f.Fuzz(func(t *testing.T, body string) {
		req, err := DecodeRequest(t.Context(), []byte(body))
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
		again, err := DecodeRequest(t.Context(), first)
		if err != nil {
			t.Fatalf("%s: %v", first, err)
		}
		if second, _ := json.Marshal(again); string(second) != string(first) {
			t.Fatalf("wrote %s, then %s", first, second)
		}
	})
}
