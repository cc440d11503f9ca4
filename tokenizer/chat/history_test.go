package chat

import (
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/goart-dev/art"
)

// plainTool is one that every released template can describe.
var plainTool = art.Tool{Name: "get_weather", Description: "Weather.", Parameters: json.RawMessage(
	`{"type": "object", "required": [], "properties": {"text": {"type": "string", "description": "a"}}}`)}

// unusable are released templates that refuse every conversation with tools: one gives tojson a generator, one takes
// tools in a form of its own.
var unusable = []string{"llama-cpp-deepseek-r1", "Apertus-8B-Instruct"}

// alternate are released templates that refuse a question right after results of calls, whatever the reply was.
var alternate = []string{"istral"}

// TestHistory_EveryReply: a released template takes every reply that its parser reads, in a history that goes on.
func TestHistory_EveryReply(t *testing.T) {
	templates := released(t)
	for _, name := range slices.Sorted(maps.Keys(templates)) {
		if slices.Contains(unusable, name) {
			continue
		}
		template := family(t, templates[name], nil)
		tools := []art.Tool{plainTool}
		if !template.WritesTools() {
			tools = nil
		}
		apart := slices.ContainsFunc(alternate, func(s string) bool { return strings.Contains(name, s) })
		for _, m := range repliesOf(template) {
			for _, sample := range []*art.Sample{nil, {IDs: template.EndOfTurn()[:1]}} {
				m.Sample = sample
				for _, h := range histories(m, !apart) {
					if _, err := template.Prompt(h, tools); err != nil {
						t.Errorf("%s: %s of %d messages: %v", name, describeReply(m), len(h), err)
					}
				}
			}
		}
	}
}

// repliesOf returns the kinds of replies that the parser of a template reads: with and without text, reasoning, calls.
func repliesOf(template *Template) []art.Message {
	var out []art.Message
	f := template.reply
	for calls := range 4 {
		for _, content := range []string{"", "Look."} {
			for _, reasoning := range []string{"", "Hm."} {
				reasons := f.thinkOpen != "" || f.calls.harmony
				if calls > 0 && f.name == noTools || reasoning != "" && !reasons {
					continue
				}
				m := art.Message{Role: art.RoleAssistant, Content: content, Reasoning: reasoning}
				for i := range calls {
					arguments := fmt.Sprintf(`{"text": "t%d"}`, i)
					m.ToolCalls = append(m.ToolCalls, art.ToolCall{ID: mistralID(i), Name: "get_weather", Arguments: arguments})
				}
				out = append(out, m)
			}
		}
	}
	return out
}

// histories are conversations that go on after a reply.
func histories(m art.Message, ask bool) [][]art.Message {
	h := []art.Message{art.User("Hi"), m}
	if len(m.ToolCalls) == 0 {
		return [][]art.Message{append(h, art.User("So?"))}
	}
	for _, call := range m.ToolCalls {
		h = append(h, art.ToolResult(call.ID, "sun"))
	}
	out := [][]art.Message{
		h, append(slices.Clone(h), m), append(slices.Clone(h), art.Assistant("Sunny."), art.User("So?")),
	}
	if ask {
		out = append(out, append(slices.Clone(h), art.User("So?")))
	}
	return out
}

func describeReply(m art.Message) string {
	return fmt.Sprintf("%q, %q, %d calls, sampled %v", m.Content, m.Reasoning, len(m.ToolCalls), m.Sample != nil)
}

// TestHistory_WritesEveryCall: where a template takes one call in a message, each of several is written, and the name
// and the result of each.
func TestHistory_WritesEveryCall(t *testing.T) {
	for name, source := range released(t) {
		if !strings.Contains(name, "gpt-oss") && !strings.Contains(name, "Llama-3.2") {
			continue
		}
		template := family(t, source, nil)
		for _, m := range repliesOf(template) {
			h := append([]art.Message{art.User("Hi"), m}, results(m)...)
			text := template.mustText(t, h, []art.Tool{plainTool}, GenerationPrompt)
			for i := range m.ToolCalls {
				for _, want := range []string{fmt.Sprintf("t%d", i), fmt.Sprintf("sun%d", i)} {
					if strings.Count(text, want) != 1 {
						t.Errorf("%s: %s: %q is not once in %q", name, describeReply(m), want, text)
					}
				}
			}
		}
	}
}

func results(m art.Message) []art.Message {
	var out []art.Message
	for i, call := range m.ToolCalls {
		out = append(out, art.ToolResult(call.ID, fmt.Sprintf("sun%d", i)))
	}
	return out
}

// harmonyReplies are replies of gpt-oss as they were sampled.
var harmonyReplies = []string{
	"<|channel|>commentary<|message|>Look.<|end|><|start|>assistant<|channel|>commentary to=functions.now<|message|>{}<|call|>",
	"<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>commentary<|message|>Look.<|end|>" +
		"<|start|>assistant<|channel|>commentary to=functions.now <|constrain|>json<|message|>{}<|call|>",
	"<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant to=functions.now<|channel|>commentary json<|message|>{}<|call|>",
	"<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>analysis<|message|>So.<|end|>" +
		"<|start|>assistant<|channel|>commentary<|message|>Spell <|.<|end|><|start|>assistant<|channel|>commentary to=functions.now<|message|>{}<|call|>",
}

// TestHistory_HarmonyKeepsTokens: a reply of gpt-oss that has a text beside its call is not refused, and stands in the
// next prompt as it was sampled, whatever comes after the result.
func TestHistory_HarmonyKeepsTokens(t *testing.T) {
	templates := released(t)
	template := family(t, templates["openai-gpt-oss-120b"], harmonyTags)
	var reported []struct {
		Reply string
		Tools []art.Tool
	}
	must(t, json.Unmarshal(read(t, filepath.Join("testdata", "replies", "gptoss_text_reasoning_call.json")), &reported))
	tools := reported[0].Tools
	for _, reply := range append(harmonyReplies, reported[0].Reply) {
		h := []art.Message{art.User("Hi")}
		var before []int32
		for range 3 {
			prompt, err := template.Prompt(h, tools)
			must(t, err)
			if len(prompt) < len(before) || !slices.Equal(prompt[:len(before)], before) {
				t.Fatalf("%q does not begin with %q", template.tok.Decode(prompt, false), template.tok.Decode(before, false))
			}
			ids := template.tok.Encode(reply, false)
			m, err := template.Parse(prompt, ids, tools)
			must(t, err)
			if len(m.ToolCalls) != 1 {
				t.Fatalf("%+v", m)
			}
			m.Sample = &art.Sample{PromptIDs: prompt, IDs: ids}
			h = append(h, m, art.ToolResult(m.ToolCalls[0].ID, "noon"))
			before = append(slices.Clone(prompt), ids...)
		}
		_, err := template.Prompt(append(h, art.User("So?")), tools)
		must(t, err)
	}
}

// TestHistory_SeveralCallsKeepTokens: so do several calls where the template takes one in a message.
func TestHistory_SeveralCallsKeepTokens(t *testing.T) {
	const call = `{"name": "get_weather", "parameters": {"text":"a"}}`
	template, tools := family(t, released(t)["meta-llama-Llama-3.2-3B-Instruct"], nil), []art.Tool{plainTool}
	h := []art.Message{art.User("Hi")}
	prompt, err := template.Prompt(h, tools)
	must(t, err)
	ids := append(template.tok.Encode(call+"; "+call, false), template.EndOfTurn()[0])
	m, err := template.Parse(prompt, ids, tools)
	must(t, err)
	m.Sample = &art.Sample{PromptIDs: prompt, IDs: ids}
	next, err := template.Prompt(append(append(h, m), results(m)...), tools)
	must(t, err)
	want := append(slices.Clone(prompt), ids...)
	if len(m.ToolCalls) != 2 || len(next) < len(want) || !slices.Equal(next[:len(want)], want) {
		t.Errorf("%q does not begin with %q", template.tok.Decode(next, false), template.tok.Decode(want, false))
	}
}

// TestHistory_Forms: the forms of templates that refuse replies, in the structure of released ones.
func TestHistory_Forms(t *testing.T) {
	const calls = "{% for c in m.tool_calls or [] %}{{ c.function.name }}{{ c.function.arguments|tojson }}{% endfor %}"
	call := func(id, name string) art.ToolCall { return art.ToolCall{ID: id, Name: name, Arguments: `{"a": 1}`} }
	several := art.Assistant("Both.")
	several.ToolCalls = []art.ToolCall{call("1", "f"), call("2", "g")}
	for _, c := range []struct {
		name, source string
		reply        art.Message
		results      []art.Message
		want         string
	}{
		{"no empty text", "{% for m in messages %}{% if not m.content %}{{ raise_exception('empty') }}{% endif %}" +
			"[{{ m.role }}:{% if m.content is string %}{{ m.content }}{% else %}{{ m.content[0].text }}{% endif %}]{% endfor %}",
			art.Assistant(""), nil, "[user:a][assistant:]"},
		{"one call", "{{ tools }}{% for m in messages %}{% if m.tool_calls|length > 1 %}" +
			"{{ raise_exception('one') }}{% endif %}[{{ m.role }}:{{ m.content or '' }}" + calls + "]{% endfor %}",
			several, []art.Message{art.ToolResult("2", "y"), art.ToolResult("1", "x"), art.ToolResult("3", "z")},
			`[user:a][assistant:Both.f{"a": 1}][tool:x][assistant:g{"a": 1}][tool:y][tool:z]`},
		{"the first call", "{{ tools }}{% for m in messages %}[{{ m.role }}:{{ m.content or '' }}" +
			"{% if m.tool_calls %}{{ m.tool_calls[0].function.name }}{{ m.tool_calls[0].function.arguments|tojson }}{% endif %}]{% endfor %}",
			several, []art.Message{art.ToolResult("1", "x"), art.ToolResult("2", "y")},
			`[user:a][assistant:Both.f{"a": 1}][tool:x][assistant:g{"a": 1}][tool:y]`},
	} {
		template, err := New(configured(t, map[string]any{"chat_template": c.source}), "")
		must(t, err)
		got, err := template.Text(append([]art.Message{art.User("a"), c.reply}, c.results...), nil, Whole)
		if got = strings.TrimPrefix(got, "None"); err != nil || got != c.want {
			t.Errorf("%s:\n got %q, %v\nwant %q", c.name, got, err, c.want)
		}
	}
}
