package chat

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/goart-dev/art"
)

// whole are the cases of replyCases whose calls are given as a whole.
var whole = []string{"llama3_json", "pythonic", "lfm2", "functiongemma", "mistral", "apriel", "deepseek_fenced"}

// TestStream_ArgumentsGrow: a call is given once its name is known, its arguments as they come.
func TestStream_ArgumentsGrow(t *testing.T) {
	const arguments = `{"text": "two words", "list": [1, 2], "on": true, "n": 5}`
	for _, c := range replyCases {
		if c.parser == noTools {
			continue
		}
		template := withTemplate(t, c.template, c.tokens...)
		call := art.ToolCall{ID: c.ids(0), Name: "get_weather", Arguments: arguments}
		messages := []art.Message{art.User("a"), {Role: art.RoleAssistant, ToolCalls: []art.ToolCall{call}}}
		ids, mask, err := template.Target(messages, []art.Tool{schema})
		must(t, err)
		reply := masked(ids, mask)
		begun, pieces := -1, 0
		r := template.Stream(template.mustPrompt(t, messages[:1], []art.Tool{schema}), []art.Tool{schema})
		for i, id := range reply {
			for _, d := range r.Add(id).ToolCalls {
				if pieces++; d.Name != "" {
					begun = i
				}
			}
		}
		grows := !slices.Contains(whole, c.template)
		if grows != (pieces >= 4) || grows != (begun >= 0 && begun < len(reply)*3/4) {
			t.Errorf("%s: %d pieces, the first after %d of %d tokens", c.template, pieces, begun, len(reply))
		}
	}
}

func (t *Template) mustPrompt(tb testing.TB, messages []art.Message, tools []art.Tool) []int32 {
	tb.Helper()
	ids, err := t.Prompt(messages, tools)
	must(tb, err)
	return ids
}

// TestStream_Malformed: a call that has begun stays, and its text is not content.
func TestStream_Malformed(t *testing.T) {
	for _, c := range []struct{ parser, text, name, arguments, content, want string }{
		{hermes, `a<tool_call>{"name": "f", "arguments": {"a": 1, `, "f", `{"a": 1, `, "a", "not ended by </tool_call>"},
		{hermes, `<tool_call>{"name": "f", "arguments": {}} x</tool_call>b`, "f", "{}", "b", "invalid character"},
		{hermes, `<tool_call>{"name": "f", "arguments": {"a": "b}}</tool_call>c`, "f", `{"a": "b}}`, "c", "unexpected end"},
		{hermes, `<tool_call>{"name": "f", "arguments": {}, "name": "g"}</tool_call>`, "f", "{}", "", errOtherCall.Error()},
		{qwen3Coder, `<tool_call><function=f><parameter=a>1</parameter><parameter=b>`, "f", `{"a": "1"`, "", "not ended"},
		{deepSeekV32, `<｜DSML｜function_calls><｜DSML｜invoke name="f">x</｜DSML｜function_calls>b`, "f", "{", "b", "expected"},
		{glm, `<tool_call>f<arg_key>a</arg_key></tool_call>b`, "f", "{", "b", "has no value"},
		{kimiK2, `<|tool_calls_section_begin|><|tool_call_begin|>functions.f:0<|tool_call_argument_begin|>{"a`, "f", `{"a`, "", "not ended"},
		{gptOSS, `<|channel|>commentary to=functions.f<|message|>{"a": [<|call|>`, "f", `{"a": [`, "", "not JSON"},
	} {
		p := smallFormat(t, c.parser, "").start(false, []art.Tool{schema})
		p.early = true
		got := art.Message{Role: art.RoleAssistant}
		p.add(withTokens(p.format, c.text)).addTo(&got)
		last, err := p.close()
		last.addTo(&got)
		var malformed *MalformedCall
		if !errors.As(err, &malformed) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s %q: error %v does not say %q", c.parser, c.text, err, c.want)
		}
		if got.Content != c.content || len(got.ToolCalls) != 1 ||
			got.ToolCalls[0].Name != c.name || got.ToolCalls[0].Arguments != c.arguments {
			t.Errorf("%s %q: %+v", c.parser, c.text, got)
		}
	}
}
