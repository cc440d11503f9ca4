package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/goart-dev/art/model/tiny"
	"github.com/goart-dev/art/tokenizer"
)

// file writes a file for a test and returns its name.
func file(t *testing.T, dir, name, text string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestRender_JSON(t *testing.T) {
	messages := file(t, t.TempDir(), "chat.json", `[{"role": "user", "content": "Hi"}]`)
	status, stdout, stderr := command("debug", "render", "--json", "tiny", messages)
	if status != 0 || stderr != "" {
		t.Fatalf("status %d, standard error %q", status, stderr)
	}
	var got rendered
	if err := json.Unmarshal([]byte(stdout), &got); err != nil {
		t.Fatal(err)
	}
	tok, err := openTokenizer("tiny")
	if err != nil {
		t.Fatal(err)
	}
	want := "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n"
	if got.Text != want || tok.Decode(got.IDs, false) != want || got.Format != "chatml" || got.Parser != "hermes" ||
		tok.Decode(got.EndOfTurn[:1], false) != "<|im_end|>" {
		t.Errorf("%+v", got)
	}
}

// TestRender_Sources: messages from standard input and from an object, a model from a folder and a file.
func TestRender_Sources(t *testing.T) {
	dir := t.TempDir()
	vocabulary, config := tiny.Tokenizer()
	tokenizerFile := file(t, dir, "tokenizer.json", string(vocabulary))
	file(t, dir, "tokenizer_config.json", string(config))
	file(t, dir, "chat_template.jinja",
		"{% for m in messages %}<{{ m.content }}>{% endfor %}{{ tools[0].function.name if tools }}{{ mood }}{{ '!' if "+
			"add_generation_prompt }}")
	object := `{"messages": [{"role": "user", "content": "a"}], "tools": [{"type": "function", "function": {"name": ` +
		`"f"}}], "chat_template_kwargs": {"mood": "x"}}`
	for _, c := range []struct {
		args []string
		in   string
		want string
	}{
		{[]string{"debug", "render", dir}, object, "<a>fx!\n"},
		{[]string{"debug", "render", "--args", `{"mood": "y"}`, "--whole", dir}, object, "<a>fy\n"},
		{[]string{"debug", "render", "--continue", dir}, `[{"role": "assistant", "content": "ab"}]`, "<ab\n"},
		{[]string{"debug", "render", "--format", "chatml", dir}, `[{"role": "user", "content": "a"}]`, "<|im_start|>user\na<|im_end|>"},
		{[]string{"debug", "render", tokenizerFile}, `[{"role": "user", "content": "a"}]`, "<a>!\n"},
		{[]string{"debug", "render", "testdata/vocabulary.gguf"}, `[{"role": "user", "content": "a"}]`, "<|im_start|>user:a<|im_end|>\n"},
		{[]string{"debug", "render", "--format", "chatml", "testdata/vocabulary.gguf"}, `[{"role": "user", "content": "a"}]`, "<|im_start|>user\na<|im_end|>"},
	} {
		setInput(t, c.in)
		status, stdout, stderr := command(c.args...)
		if status != 0 || !strings.HasPrefix(stdout, c.want) || !strings.Contains(stdout, " ids: [") {
			t.Errorf("%v: status %d, %q %q; want %q", c.args, status, stdout, stderr, c.want)
		}
	}
}

func TestRender_Errors(t *testing.T) {
	dir, broken := t.TempDir(), t.TempDir()
	file(t, broken, "tokenizer.json", "{")
	for want, args := range map[string][]string{
		"want MODEL":                                {"debug", "render"},
		"one of --whole":                            {"debug", "render", "--whole", "--continue", "tiny"},
		"no such file":                              {"debug", "render", "nowhere"},
		"role":                                      {"debug", "render", "tiny", file(t, dir, "role.json", `[{"content": "a"}]`)},
		"none.json: there are no messages":          {"debug", "render", "tiny", file(t, dir, "none.json", `{}`)},
		"list.json: there are no messages":          {"debug", "render", "tiny", file(t, dir, "list.json", `[]`)},
		"broken.json: unexpected end of JSON":       {"debug", "render", "tiny", file(t, dir, "broken.json", `[`)},
		"tools.json: json: cannot unmarshal number": {"debug", "render", "tiny", file(t, dir, "tools.json", `{"messages": [{"role": "user", "content": "a"}], "tools": 3}`)},
		"'{' expected at byte 0 (in " + filepath.Join(dir, "empty.json") + ")": {"debug", "render", file(t, dir, "empty.json", "")},
		"(in " + filepath.Join(dir, "no.model") + ")":                          {"debug", "render", file(t, dir, "no.model", "x")},
		"(in " + broken + ")":   {"debug", "render", broken},
		`"llama" is not known`:  {"debug", "render", "--format", "llama", "tiny"},
		"must be a JSON object": {"debug", "render", "--args", "[]", "tiny", file(t, dir, "a.json", `[{"role": "user", "content": "a"}]`)},
	} {
		if status, _, stderr := command(args...); status == 0 || !strings.Contains(stderr, want) {
			t.Errorf("%v: status %d, standard error %q does not say %q", args, status, stderr, want)
		}
	}
}

// TestRender_ToolFormat: a template that does not render tools is an error, unless a format is given.
func TestRender_ToolFormat(t *testing.T) {
	dir := t.TempDir()
	vocabulary, config := tiny.Tokenizer()
	file(t, dir, "tokenizer.json", string(vocabulary))
	file(t, dir, "tokenizer_config.json", string(config))
	file(t, dir, "chat_template.jinja", "{% for m in messages %}<{{ m.content }}>{% endfor %}")
	chat := file(t, t.TempDir(), "chat.json",
		`{"messages": [{"role": "user", "content": "a"}], "tools": [{"type": "function", "function": {"name": "f"}}]}`)
	if status, _, stderr := command("debug", "render", dir, chat); status != 1 ||
		!strings.Contains(stderr, "ToolFormat (hermes,") {
		t.Errorf("status %d, %q", status, stderr)
	}
	if status, stdout, stderr := command("debug", "render", "--tool-format", "hermes", dir, chat); status != 0 ||
		!strings.Contains(stdout, `"name": "f"`) {
		t.Errorf("status %d, %q %q", status, stdout, stderr)
	}
	if status, _, stderr := command("debug", "render", "--tool-format", "xml", dir, chat); status != 1 ||
		!strings.Contains(stderr, `"xml" is not known`) {
		t.Errorf("status %d, %q", status, stderr)
	}
}

// TestTemplateReport: inspect says what a template does not render, and which replies cannot be parsed.
func TestTemplateReport(t *testing.T) {
	for source, want := range map[string]string{
		"{% for m in messages %}<{{ m.content }}>{% endfor %}": "renders tools: false, tool calls: false",
		"{{ tools }}{% for m in messages %}{{ m.content }}{% for c in m.tool_calls or [] %}CALL {{ c.function.name }}{{ c.function.arguments|tojson }}{% endfor %}{% endfor %}": "warning: it writes tool calls in a format that no parser reads",
	} {
		config, err := json.Marshal(map[string]string{"chat_template": source})
		if err != nil {
			t.Fatal(err)
		}
		vocabulary, _ := tiny.Tokenizer()
		report := templateOf(tokenizer.New(vocabulary, config))
		if got := strings.Join(report.notes(), "; "); !strings.Contains(got, want) {
			t.Errorf("%s: %q does not say %q", source, got, want)
		}
	}
}
