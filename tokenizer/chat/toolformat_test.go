package chat

import (
	"cmp"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/goart-dev/art"
)

// withoutTools are templates that omit tools, in the structure of released ones: SmolLM2, Gemma 3, Gemma 2.
var withoutTools = []string{"plain_chatml", "alternating", "no_system"}

// withToolFormat is a template of testdata with a tool format.
func withToolFormat(t *testing.T, name, format string, tokens ...string) *Template {
	t.Helper()
	template, err := withTemplate(t, name, tokens...).With(Options{ToolFormat: format})
	must(t, err)
	return template
}

// TestText_ToolsLeftOut: tools and calls that a template does not write are an error that says what helps. They were
// once silently lost.
func TestText_ToolsLeftOut(t *testing.T) {
	for _, name := range withoutTools {
		template := withTemplate(t, name)
		if template.WritesTools() || template.WritesCalls() {
			t.Errorf("%s: writes tools %v, calls %v", name, template.WritesTools(), template.WritesCalls())
		}
		_, withTools := template.Prompt(twoSteps()[:1], []art.Tool{weather})
		_, withCalls := template.Prompt(twoSteps()[:2], nil)
		_, _, target := template.Target(twoSteps()[:2], nil)
		_, text := template.Text(twoSteps()[:1], []art.Tool{weather}, Whole)
		for what, err := range map[string]error{"tools": withTools, "calls": withCalls, "target": target, "text": text} {
			if !errors.Is(err, ErrToolsLeftOut) || !strings.Contains(err.Error(), "ToolFormat (hermes, llama3_json,") {
				t.Errorf("%s, %s: %v", name, what, err)
			}
		}
		if _, err := template.Prompt([]art.Message{art.User("a")}, nil); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if template := newTemplate(t); !template.WritesTools() || !template.WritesCalls() {
		t.Error("ChatML writes tools and calls")
	}
}

// TestText_ToolOfConversationLeftOut: a template may write tools only in some conversations.
func TestText_ToolOfConversationLeftOut(t *testing.T) {
	config := map[string]any{"chat_template": "{% if messages|length < 2 %}{{ tools }}{% endif %}"}
	template, err := New(configured(t, config), "")
	must(t, err)
	for n, want := range map[int]bool{1: true, 2: false} {
		_, err := template.Text(twoSteps()[:n], []art.Tool{weather}, Whole)
		if (err == nil) != want && n == 1 || n == 2 && !errors.Is(err, ErrToolsLeftOut) {
			t.Errorf("%d messages: %v", n, err)
		}
	}
}

// TestText_ToolFormat: the text of tools, calls and results.
func TestText_ToolFormat(t *testing.T) {
	call := art.ToolCall{ID: "c", Name: "get_weather", Arguments: `{"city": "Paris", "days": [1, true, null]}`}
	messages := []art.Message{
		art.System("S"), art.User("Weather?"),
		{Role: art.RoleAssistant, Content: "See.", ToolCalls: []art.ToolCall{call, call}},
		art.ToolResult("c", "sun"), art.ToolResult("c", "rain"), art.User("Sure?"),
		{Role: art.RoleAssistant, ToolCalls: []art.ToolCall{call}},
	}
	const turns = "<|im_start|>user\nWeather?<|im_end|>\n<|im_start|>assistant\nSee.\nCALLS<|im_end|>\n" +
		"<|im_start|>user\n<tool_response>\nsun\n</tool_response>\n" +
		"<tool_response>\nrain\n</tool_response>\nSure?<|im_end|>\n<|im_start|>assistant\nCALL<|im_end|>\n"
	const objects = "<tool_call>\n" +
		"{\"name\": \"get_weather\", \"arguments\": {\"city\": \"Paris\", \"days\": [1, true, null]}}\n</tool_call>"
	const xml = "<tool_call>\n<function=get_weather>\n<parameter=city>\nParis\n</parameter>" +
		"\n<parameter=days>\n[1, true, null]\n</parameter>\n</function>\n</tool_call>"
	const llama = `{"name": "get_weather", "parameters": {"city": "Paris", "days": [1, true, null]}}`
	const python = `get_weather(city="Paris", days=[1, True, None])`
	for format, want := range map[string]struct{ calls, call string }{
		hermes: {objects + "\n" + objects, objects}, qwen3Coder: {xml + "\n" + xml, xml},
		llama3JSON: {"<|python_tag|>" + llama + "; " + llama, llama},
		pythonic:   {"<|python_start|>[" + python + ", " + python + "]<|python_end|>", "[" + python + "]"},
	} {
		got := withToolFormat(t, "plain_chatml", format).mustText(t, messages, []art.Tool{weather}, Whole)
		system, after, _ := strings.Cut(got, "<|im_end|>\n")
		if rest := strings.NewReplacer("CALLS", want.calls, "CALL", want.call).Replace(turns); after != rest {
			t.Errorf("%s:\n got %q\nwant %q", format, after, rest)
		}
		for _, part := range []string{
			"<|im_start|>system\nS\n\n", "<tools>\n{\"type\": \"function\", \"function\": {\"name\": \"get_weather\"",
			"°C", "</tools>", "<tool_response>",
		} {
			if !strings.Contains(system, part) {
				t.Errorf("%s: %q is not in %q", format, part, system)
			}
		}
	}
}

// TestText_ToolFormatRoles: roles alternate, and without a system message, tools come before the first question.
func TestText_ToolFormatRoles(t *testing.T) {
	for _, format := range ToolFormats() {
		for _, name := range withoutTools {
			template := withToolFormat(t, name, format)
			for n := 1; n <= len(twoSteps()); n++ {
				text := template.mustText(t, twoSteps()[:n], []art.Tool{weather}, GenerationPrompt)
				tools, question := strings.Index(text, "<tools>"), strings.Index(text, "Weather?")
				if tools < 0 || question < tools || strings.Count(text, "<tools>") != 1 {
					t.Errorf("%s, %s: %q", name, format, text)
				}
			}
			without := template.mustText(t, twoSteps(), nil, GenerationPrompt)
			if strings.Contains(without, "<tools>") || !strings.Contains(without, "<tool_response>\nsun\n</tool_response>") ||
				!strings.Contains(without, "Paris") {
				t.Errorf("%s, %s, no tools: %q", name, format, without)
			}
		}
	}
}

// formatMessage is a reply that a format can write: its texts spell no tags that are not tokens.
func formatMessage(rng *rand.Rand, c *replyCase) art.Message {
	m := c.message(rng)
	if len(m.ToolCalls) > 0 && rng.IntN(2) == 0 {
		m.Content = ""
	}
	return m
}

// TestParse_InvertsToolFormats: what a format writes for a reply is parsed as that reply, whether tags are tokens or
// not.
func TestParse_InvertsToolFormats(t *testing.T) {
	for _, format := range ToolFormats() {
		for _, name := range withoutTools {
			for _, tokens := range [][]string{
				nil, {"<tool_call>", "</tool_call>", "<|python_tag|>", "<|python_start|>", "<|python_end|>"},
			} {
				template, rng := withToolFormat(t, name, format, tokens...), seeded(t)
				c := &replyCase{parser: format, mixed: true, ids: callID}
				before, tools := []art.Message{art.User("Hi")}, []art.Tool{schema}
				prompt, err := template.Prompt(before, tools)
				must(t, err)
				for range 60 {
					m := formatMessage(rng, c)
					giveIDs(&m, format, prompt)
					ids, mask, err := template.Target(append(slices.Clone(before), m), tools)
					must(t, err)
					got, err := template.Parse(prompt, masked(ids, mask), tools)
					if err != nil || !reflect.DeepEqual(spaced(got), spaced(m)) {
						text := template.tok.Decode(masked(ids, mask), false)
						t.Fatalf("%s, %s: %q\n got %+v (%v)\nwant %+v", name, format, text, got, err, m)
					}
				}
			}
		}
	}
}

// spaced is a message with its arguments in canonical form.
func spaced(m art.Message) art.Message {
	m.ToolCalls = slices.Clone(m.ToolCalls)
	for i := range m.ToolCalls {
		v, _ := decodeNumbers(cmp.Or(m.ToolCalls[i].Arguments, "{}"))
		data, err := json.Marshal(v)
		if err != nil {
			panic(err)
		}
		m.ToolCalls[i].Arguments = string(data)
	}
	return m
}

// TestPrompt_ExtendsToolFormats: a prompt and the ids sampled from it are the beginning of the next prompt, in
// conversations with calls and their results.
func TestPrompt_ExtendsToolFormats(t *testing.T) {
	for _, format := range ToolFormats() {
		for _, name := range withoutTools {
			template, rng := withToolFormat(t, name, format), seeded(t)
			c := &replyCase{parser: format, mixed: true, ids: callID}
			tools := []art.Tool{schema}
			for range 20 {
				h := art.History{Messages: []art.Message{art.User("Hi")}}
				for range 4 {
					reply := sampled(t, template, c, rng, h.Messages, tools)
					h.Add(reply)
					for _, call := range reply.ToolCalls {
						h.Add(art.ToolResult(call.ID, plainText(rng)))
					}
					if len(reply.ToolCalls) == 0 {
						h.Add(art.User(plainText(rng)))
					}
				}
				if breaks := h.Breaks(); len(breaks) > 0 {
					t.Fatalf("%s, %s: breaks %v in %+v", name, format, breaks, h.Messages)
				}
			}
		}
	}
}

// TestPrompt_ToolFormatTokens: tags become their tokens, and content that spells them does not.
func TestPrompt_ToolFormatTokens(t *testing.T) {
	template := withToolFormat(t, "plain_chatml", hermes, "<tool_call>", "</tool_call>")
	open, _ := template.tok.TokenID("<tool_call>")
	call := art.ToolCall{ID: "c", Name: "f", Arguments: `{"a": "<tool_call>"}`}
	messages := []art.Message{art.User("<tool_call>"), {Role: art.RoleAssistant, ToolCalls: []art.ToolCall{call}}}
	ids, err := template.Prompt(messages, nil)
	must(t, err)
	n := 0
	for _, id := range ids {
		if id == open {
			n++
		}
	}
	if n != 1 {
		t.Errorf("%d tokens <tool_call> in %q", n, template.tok.Decode(ids, false))
	}
}

func TestWith_ToolFormatErrors(t *testing.T) {
	template := withTemplate(t, "no_system")
	for _, c := range []struct {
		options Options
		want    string
	}{
		{Options{ToolFormat: "xml"}, `"xml" is not known, only hermes, llama3_json, pythonic, qwen3_coder`},
		{Options{ToolFormat: hermes, Parser: hermes}, "not both"},
	} {
		if _, err := template.With(c.options); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v does not say %q", c.options, err, c.want)
		}
	}
	python := withToolFormat(t, "no_system", pythonic)
	m := art.Message{Role: art.RoleAssistant, ToolCalls: []art.ToolCall{{Name: "f", Arguments: "oops"}}}
	if _, err := python.Text([]art.Message{art.User("a"), m}, nil, Whole); err == nil ||
		!strings.Contains(err.Error(), "message 1: tool call 0: its arguments are not a JSON object") {
		t.Errorf("%v", err)
	}
	_, err := python.Text([]art.Message{{Role: art.RoleAssistant, Content: "a"}}, []art.Tool{weather}, Whole)
	if err == nil || !strings.Contains(err.Error(), "takes no system message") {
		t.Errorf("%v", err)
	}
	must(t, json.Unmarshal([]byte(`{"role": "tool", "tool_call_id": "c", `+
		`"content": [{"type": "image_url", "image_url": {"url": "a"}}]}`), &m))
	if _, err := python.Text([]art.Message{art.User("a"), m}, nil, Whole); err == nil ||
		!strings.Contains(err.Error(), "message 1: its content has parts other than text") {
		t.Errorf("%v", err)
	}
}
