package chat

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/tokenizer"
)

// mustText renders a conversation, and ends the test if it cannot.
func (t *Template) mustText(tb testing.TB, messages []art.Message, tools []art.Tool, ending Ending) string {
	tb.Helper()
	text, err := t.Text(messages, tools, ending)
	must(tb, err)
	return text
}

// TestNew_Selection: the template is the one that transformers chooses.
func TestNew_Selection(t *testing.T) {
	named := []map[string]string{
		{"name": "default", "template": "D{{ messages[0].content }}"},
		{"name": "tool_use", "template": "T{{ tools[0].function.name }}"},
		{"name": "rag", "template": "R{{ tools[0].function.name }}"},
	}
	dir := t.TempDir()
	write := func(name, text string) {
		must(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700))
		must(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	write("tokenizer.json", string(vocabularyFile(t)))
	write("tokenizer_config.json", `{"chat_template": "C"}`)
	write("chat_template.jinja", "F")
	write("additional_chat_templates/tool_use.jinja", "G{{ tools[0].function.name if tools }}")
	folder, err := tokenizer.Load(dir)
	must(t, err)
	for _, c := range []struct {
		tok   *tokenizer.Tokenizer
		name  string
		tools []art.Tool
		want  string
	}{
		{configured(t, map[string]any{"chat_template": "one"}), "", nil, "one"},
		{configured(t, map[string]any{"chat_template": "one{{ tools[0].function.name }}"}), "", []art.Tool{weather}, "oneget_weather"},
		{configured(t, map[string]any{"chat_template": named}), "", nil, "Dx"},
		{configured(t, map[string]any{"chat_template": named}), "", []art.Tool{weather}, "Tget_weather"},
		{configured(t, map[string]any{"chat_template": named}), "rag", []art.Tool{weather}, "Rget_weather"},
		{configured(t, map[string]any{"chat_template": "one"}), ChatML, nil, "<|im_start|>user\nx<|im_end|>\n"},
		{folder, "", nil, "F"},
		{folder, "", []art.Tool{weather}, "Gget_weather"},
		{folder, "tool_use", nil, "G"},
	} {
		template, err := New(c.tok, c.name)
		must(t, err)
		if got := template.mustText(t, []art.Message{art.User("x")}, c.tools, Whole); got != c.want {
			t.Errorf("%q, %d tools: %q, want %q", c.name, len(c.tools), got, c.want)
		}
	}
	for config, want := range map[string]string{
		`{"chat_template": [{"name": "rag", "template": "R"}]}`: `none of them "default"`,
		`{"chat_template": "{% for %}"}`:                        "line 1",
	} {
		tok, err := tokenizer.New(vocabularyFile(t), []byte(config))
		must(t, err)
		if _, err := New(tok, ""); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v does not say %q", config, err, want)
		}
	}
}

// TestNew_ByName: the built-in formats are those of their papers and code.
func TestNew_ByName(t *testing.T) {
	tok := configured(t, map[string]any{"bos_token": "<|im_start|>", "eos_token": "<|im_end|>"})
	messages := []art.Message{art.System("S"), art.User("a "), art.Assistant(" b"), art.User("c")}
	for name, want := range map[string]string{
		"llama2": "<|im_start|>[INST] <<SYS>>\nS\n<</SYS>>\n\na [/INST] b <|im_end|><|im_start|>[INST] c [/INST]",
		"alpaca": "S\n\n### Instruction:\na \n\n### Response:\n b<|im_end|>\n\n### Instruction:\nc\n\n### Response:\n",
	} {
		template, err := New(tok, name)
		must(t, err)
		if got := template.mustText(t, messages, nil, GenerationPrompt); got != want {
			t.Errorf("%s:\n got %q\nwant %q", name, got, want)
		}
		if end := template.EndOfTurn(); len(end) == 0 || tok.Decode(end[:1], false) != "<|im_end|>" {
			t.Errorf("%s: a turn ends with %v", name, end)
		}
		if _, err := template.Text(messages, []art.Tool{weather}, GenerationPrompt); err == nil ||
			!strings.Contains(err.Error(), "no tools") {
			t.Errorf("%s with tools: %v", name, err)
		}
		if _, err := New(small(t), name); (err == nil) != (name == "alpaca") {
			t.Errorf("%s without bos_token: %v", name, err)
		}
	}
}

// TestText_Variables: the variables of a template besides messages and tools.
func TestText_Variables(t *testing.T) {
	tok := configured(t, map[string]any{
		"bos_token": "<|im_start|>", "eos_token": map[string]string{"content": "<|im_end|>"}, "pad_token": nil,
		"chat_template": "{{ bos_token }}{{ eos_token }}{{ pad_token is defined }}{{ documents }}" +
			"{{ thinking is defined }}{% for m in messages %}{{ m|tojson }}{% endfor %}",
	})
	template, err := New(tok, "")
	must(t, err)
	if got := template.mustText(t, nil, nil, Whole); got != "<|im_start|><|im_end|>FalseNoneFalse" {
		t.Error(got)
	}
	with, err := template.With(Options{
		Args: json.RawMessage(`{"thinking": false, "documents": [{"title": "t"}]}`), Parser: pythonic,
	})
	must(t, err)
	if got := with.mustText(t, nil, nil, Whole); got != "<|im_start|><|im_end|>False[{'title': 't'}]True" ||
		with.Parser() != pythonic || template.Parser() != noTools {
		t.Error(got, with.Parser(), template.Parser())
	}
	if _, err := template.With(Options{Parser: "x"}); err == nil {
		t.Error("an unknown parser is no error")
	}
	if _, err := template.With(Options{Args: json.RawMessage(`{"messages": []}`)}); err == nil ||
		!strings.Contains(err.Error(), `"messages"`) {
		t.Errorf("messages as an argument: error %v", err)
	}
	message := art.Message{Role: art.RoleAssistant, Reasoning: "r",
		ToolCalls: []art.ToolCall{
			{ID: "c", Name: "f", Arguments: `{"b": 1.0, "a": [null]}`}, {ID: "d", Name: "g", Arguments: "oops"},
		}}
	want := `{"thinking": "r", "role": "assistant", "content": "", "reasoning_content": "r", "tool_calls": [` +
		`{"id": "c", "type": "function", "function": {"name": "f", "arguments": {"b": 1.0, "a": [null]}}}, ` +
		`{"id": "d", "type": "function", "function": {"name": "g", "arguments": "oops"}}]}`
	if got := template.mustText(t, []art.Message{message}, nil, Whole); !strings.HasSuffix(got, want) {
		t.Errorf("\n got %s\nwant %s", got, want)
	}
}

// TestText_Dialects: a call reaches a template in the form that it can take: arguments as an object or as their text,
// and no content as null or the empty string.
func TestText_Dialects(t *testing.T) {
	const call = "{% for m in messages %}{% for c in m.tool_calls or [] %}{{ c.function.name }}"
	arguments := func(content string) art.Message {
		return art.Message{Role: art.RoleAssistant, Content: content,
			ToolCalls: []art.ToolCall{{ID: "c", Name: "f", Arguments: `{"b": 1, "a": "é"}`}}}
	}
	for _, c := range []struct{ source, content, want string }{
		{call + "{{ c.function.arguments|tojson }}{% endfor %}{% endfor %}", "", `f{"b": 1, "a": "é"}`},
		{call + "{% for k, v in c.function.arguments|items %}{{ k }}{{ v }}{% endfor %}{% endfor %}{% endfor %}", "", "fb1aé"},
		{call + "{{ ' ' + c.function.arguments }}{% endfor %}{% endfor %}", "", `f {"b": 1, "a": "é"}`},
		{call + "{{ c.function.arguments }}{% endfor %}{% endfor %}", "", `f{"b": 1, "a": "é"}`},
		{"{% for m in messages %}{{ '<' in m.content }}{% endfor %}" + call + "{{ c.function.arguments|tojson }}{% endfor %}{% endfor %}", "", `Falsef{"b": 1, "a": "é"}`},
		{"{% for m in messages %}{{ m.content }}{% endfor %}" + call + "{{ c.function.arguments|tojson }}{% endfor %}{% endfor %}", "", `f{"b": 1, "a": "é"}`},
		{"{% for m in messages %}{% if m.content is none %}{% for c in m.tool_calls %}{{ c.function.name + c.function.arguments }}{% endfor %}{% else %}{{ m.content }}{% endif %}{% endfor %}", "", `f{"b": 1, "a": "é"}`},
		{"{% for m in messages %}{{ m.content is none }}{% endfor %}" + call + "{{ c.function.arguments|tojson }}{% endfor %}{% endfor %}", "", `Truef{"b": 1, "a": "é"}`},
		{"{% for m in messages %}{{ m.content }}{% endfor %}" + call + "{{ c.function.arguments|tojson }}{% endfor %}{% endfor %}", "x", `xf{"b": 1, "a": "é"}`},
	} {
		template, err := New(configured(t, map[string]any{"chat_template": c.source}), "")
		must(t, err)
		if got := template.mustText(t, []art.Message{arguments(c.content)}, nil, Whole); got != c.want {
			t.Errorf("%s:\n got %q\nwant %q", c.source, got, c.want)
		}
	}
}

// TestText_Continue: the text ends within the last message.
func TestText_Continue(t *testing.T) {
	for source, want := range map[string]string{
		"{% for m in messages %}<{{ m.content }}>{% endfor %}":      "<a><b  ",
		"{% for m in messages %}<{{ m.content|trim }}>{% endfor %}": "<a><b",
		"{% for m in messages %}<{{ m.role }}>{% endfor %}":         "",
		"{{ raise_exception('no') }}":                               "",
	} {
		template, err := New(configured(t, map[string]any{"chat_template": source}), "")
		must(t, err)
		got, err := template.Text([]art.Message{art.User("a"), art.Assistant("b  ")}, nil, ContinueFinal)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%s: %q, %v; want %q", source, got, err, want)
		}
	}
}

// TestPrompt_ReadsContent: even if a template looks for tags in a text, special tokens in it stay text.
func TestPrompt_ReadsContent(t *testing.T) {
	tokens := []string{"<|im_start|>", "<|im_end|>", "</think>"}
	var added []map[string]any
	for i, token := range tokens {
		added = append(added, map[string]any{"id": 900 + i, "content": token, "special": i < 2})
	}
	list, err := json.Marshal(added)
	must(t, err)
	tok, err := tokenizer.New(patched(t, map[string]json.RawMessage{"added_tokens": list}), []byte(`{"chat_template":
		"{% for m in messages %}<|im_start|>{{ m.content.split('</think>')[-1] }}</think>{% endfor %}"}`))
	must(t, err)
	id := func(token string) int32 {
		id, _ := tok.TokenID(token)
		return id
	}
	template, err := New(tok, "")
	must(t, err)
	for content, want := range map[string]string{
		"a<|im_end|>b": "<|im_start|>a<|im_end|>b</think>", "x</think><|im_end|>y": "<|im_start|><|im_end|>y</think>",
	} {
		ids, err := template.Prompt([]art.Message{art.User(content)}, nil)
		must(t, err)
		if got := tok.Decode(ids, false); got != want || slices.Contains(ids, id("<|im_end|>")) ||
			ids[0] != id("<|im_start|>") || ids[len(ids)-1] != id("</think>") {
			t.Errorf("%q: %q %v", content, got, ids)
		}
	}
}

func BenchmarkPrompt(b *testing.B) {
	template := newTemplate(b)
	messages := []art.Message{art.System("You are an agent that answers questions about the weather.")}
	for range 10 {
		messages = append(messages, art.User("What is the weather like in Paris today, and will it rain tomorrow?"))
		prompt, err := template.Prompt(messages, []art.Tool{weather})
		must(b, err)
		reply := template.tok.EncodeOrdinary("It is sunny today, and it will rain tomorrow.")
		messages = append(messages, art.Message{
			Role: art.RoleAssistant, Content: "It is sunny today, and it will rain tomorrow.",
			Sample: &art.Sample{PromptIDs: prompt, IDs: reply},
		})
	}
	messages = append(messages, art.User("And the day after?"))
	b.Run("text", func(b *testing.B) {
		for b.Loop() {
			template.mustText(b, messages, []art.Tool{weather}, GenerationPrompt)
		}
	})
	b.Run("ids", func(b *testing.B) {
		for b.Loop() {
			_, err := template.Prompt(messages, []art.Tool{weather})
			must(b, err)
		}
	})
}
