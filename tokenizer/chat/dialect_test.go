package chat

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/tokenizer"
)

// twoSteps is a conversation as an agent sends it: a call, its result, an answer, and another question. On the wire,
// the content of a message made in Go that has calls is null.
func twoSteps() []art.Message {
	call := art.ToolCall{ID: "call00000", Name: "get_weather", Arguments: `{"city": "Paris"}`}
	return []art.Message{
		art.User("Weather?"), {Role: art.RoleAssistant, ToolCalls: []art.ToolCall{call}}, art.ToolResult("call00000", "sun"),
		art.Assistant("Sunny."), art.User("Sure?"),
	}
}

// released returns the templates of released models, by name. They are not part of this repository: the folder of those
// lies beside it, or where ART_SHARED says. Without it the tests of these templates are skipped, and fail where CI is
// set.
func released(t *testing.T) map[string]string {
	t.Helper()
	dir := os.Getenv("ART_SHARED")
	if dir == "" {
		dir = filepath.Join("..", "..", "..", "shared", "testdata")
	}
	if _, err := os.Stat(filepath.Join(dir, "chat_templates", "released")); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatalf("%v: set ART_SHARED to a folder with chat_templates", err)
		}
		t.Skip("set ART_SHARED to a folder with chat_templates")
	}
	out := map[string]string{}
	files, err := filepath.Glob(filepath.Join(dir, "chat_templates", "released", "*.jinja"))
	must(t, err)
	for _, file := range files {
		out[strings.TrimSuffix(filepath.Base(file), ".jinja")] = string(read(t, file))
	}
	var cases []struct{ Name, Template string }
	must(t, json.Unmarshal(read(t, filepath.Join(dir, "chat_templates", "cases.json")), &cases))
	for _, c := range cases {
		name := c.Name
		if !strings.HasPrefix(name, "hfjs:") {
			name, _, _ = strings.Cut(name, "/")
		}
		out[name] = c.Template
	}
	if len(out) == 0 {
		t.Fatalf("%s has no templates", dir)
	}
	return out
}

var tagLike = regexp.MustCompile(`<[|｜][^<>|｜]+[|｜]>|<(?:start|end)_of_turn>|<seed:eos>|<SPECIAL_\d+>|\[e~\[`)

// ofReleased is a released template with the small vocabulary, in which its tags are special tokens.
func ofReleased(t *testing.T, source string) (*Template, error) {
	t.Helper()
	var added []map[string]any
	seen := map[string]bool{}
	tokens := append([]string{"<s>", "<|end|>", "<|return|>", "<|call|>"}, tagLike.FindAllString(source, -1)...)
	for _, token := range tokens {
		if !seen[token] {
			added = append(added, map[string]any{"id": 900 + len(added), "content": token, "special": true})
		}
		seen[token] = true
	}
	list, err := json.Marshal(added)
	must(t, err)
	config, err := json.Marshal(map[string]string{"bos_token": "<s>", "eos_token": "<s>", "chat_template": source})
	must(t, err)
	tok, err := tokenizer.New(patched(t, map[string]json.RawMessage{"added_tokens": list}), config)
	must(t, err)
	return New(tok, "")
}

// TestText_TwoSteps: some templates take null as the content of the last message only, or of none. Then null must not
// reach them, wherever the call is. The sources have the structure of released templates that failed.
func TestText_TwoSteps(t *testing.T) {
	const call = "{% for c in m.tool_calls or [] %}{{ c.function.name }}{{ c.function.arguments|tojson }}{% endfor %}"
	for name, source := range map[string]string{
		"not last": "{% for m in messages %}{% set text = m.content %}{% if not loop.last %}" +
			"{% set text = m.content.split('</think>')[-1] %}{% endif %}{{ m.role }}{{ text or '' }}" + call + "{% endfor %}",
		"no calls": "{% for m in messages %}{{ m.role + m.content }}{% endfor %}",
		"printed":  "{% for m in messages %}{{ m.role }}{% if m.content is not none or not loop.last %}{{ m.content }}{% endif %}" + call + "{% endfor %}",
	} {
		template, err := New(configured(t, map[string]any{"chat_template": source}), "")
		must(t, err)
		for n := 1; n <= len(twoSteps()); n++ {
			text, err := template.render(twoSteps()[:n], nil, GenerationPrompt)
			if err != nil || strings.Contains(text, "None") {
				t.Errorf("%s, %d messages: %q, %v", name, n, text, err)
			}
		}
	}
}

// TestText_NullContent: in a message without calls, null becomes the empty string.
func TestText_NullContent(t *testing.T) {
	config := map[string]any{"chat_template": "{% for m in messages %}<{{ m.content }}>{% endfor %}"}
	template, err := New(configured(t, config), "")
	must(t, err)
	var m art.Message
	must(t, json.Unmarshal([]byte(`{"role": "assistant", "content": null}`), &m))
	if got := template.mustText(t, []art.Message{m}, nil, Whole); got != "<>" {
		t.Errorf("%q", got)
	}
}

// TestText_ReleasedTwoSteps: no released template fails on null, or prints it.
func TestText_ReleasedTwoSteps(t *testing.T) {
	for name, source := range released(t) {
		template, err := ofReleased(t, source)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for n := 2; n <= len(twoSteps()); n++ {
			text, err := template.render(twoSteps()[:n], []art.Tool{weather}, GenerationPrompt)
			message := fmt.Sprint(err)
			saysNone := strings.Contains(message, "NoneType") || strings.Contains(message, "'None'")
			if saysNone || nulls(text) > nulls(source) {
				t.Errorf("%s, %d messages: %v; %q", name, n, err, text)
			}
		}
	}
}
