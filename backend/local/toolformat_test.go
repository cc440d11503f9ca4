package local

import (
	"bytes"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/tokenizer"
	"github.com/goart-dev/art/tokenizer/chat"
)

// withSource is the tiny model with a chat template, as a folder.
func withSource(t *testing.T, source string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range tinyFiles(t) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), content, 0o600))
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "chat_template.jinja"), []byte(source), 0o600))
	return dir
}

// TestComplete_ToolFormat: tools that the chat template leaves out were lost in silence. They are an error that names
// the option, in Go and over HTTP, and with the option they are in the prompt.
func TestComplete_ToolFormat(t *testing.T) {
	dir := withSource(t, "{% for m in messages %}{{ m.content }}{% endfor %}")
	b, err := Open(t.Context(), &Options{Dir: t.TempDir()})
	require.NoError(t, err)
	defer b.Close()
	options := art.ModelOptions{Base: dir, Frozen: true, Chat: art.ChatOptions{MaxTokens: new(1)}}
	lost := art.NewModel("lost", &options)
	require.NoError(t, lost.Register(t.Context(), b))
	question := &art.History{Messages: []art.Message{art.User("7+5=")}, Tools: []art.Tool{{Name: "add"}}}
	_, err = lost.Complete(t.Context(), question, nil)
	require.ErrorIs(t, err, art.ErrInvalid)
	require.ErrorContains(t, err, "ModelOptions.ToolFormat")

	body := `{"model": "lost", "messages": [{"role": "user", "content": "7+5="}], ` +
		`"tools": [{"type": "function", "function": {"name": "add"}}]}`
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://m/v1/chat/completions",
		strings.NewReader(body))
	require.NoError(t, err)
	response, err := lost.HTTPClient().Do(request)
	require.NoError(t, err)
	defer response.Body.Close()
	var text bytes.Buffer
	_, err = text.ReadFrom(response.Body)
	require.NoError(t, err)
	require.Equal(t, http.StatusBadRequest, response.StatusCode)
	require.Contains(t, text.String(), "ModelOptions.ToolFormat")

	options.ToolFormat, options.Frozen = "llama3_json", false
	given := art.NewModel("given", &options)
	require.NoError(t, given.Register(t.Context(), b))
	reply, err := given.Complete(t.Context(), question, nil)
	require.NoError(t, err)
	tok, err := tokenizer.Load(dir)
	require.NoError(t, err)
	require.Contains(t, tok.Decode(reply.Message.Sample.PromptIDs, false), `"name": "add"`)
}

// TestRegister_ToolFormat: the names are those of the tokenizer, and another one is an error that lists them.
func TestRegister_ToolFormat(t *testing.T) {
	b := open(t, t.TempDir())
	for _, format := range chat.ToolFormats() {
		require.NoError(t, art.NewModel(format, &art.ModelOptions{ToolFormat: format, Frozen: true}).Register(t.Context(), b))
	}
	err := art.NewModel("m", &art.ModelOptions{ToolFormat: "xml"}).Register(t.Context(), b)
	require.ErrorIs(t, err, art.ErrInvalid)
	require.ErrorContains(t, err, `tool format "xml" is not known; there are `+strings.Join(chat.ToolFormats(), ", "))
}

// TestRegister_TemplateWarning: a template that writes calls that no parser reads is a warning.
func TestRegister_TemplateWarning(t *testing.T) {
	dir := withSource(t, "{{ tools }}{% for m in messages %}{{ m.content or '' }}{% for c in m.tool_calls or [] %}"+
		"CALL {{ c.function.name }} {{ c.function.arguments|tojson }}{% endfor %}{% endfor %}")
	var log bytes.Buffer
	b, err := Open(t.Context(), &Options{Dir: t.TempDir(), Logger: slog.New(slog.NewTextHandler(&log, nil))})
	require.NoError(t, err)
	defer b.Close()
	require.NoError(t, art.NewModel("m", &art.ModelOptions{Base: dir, Frozen: true}).Register(t.Context(), b))
	require.Contains(t, log.String(), "level=WARN")
	require.Contains(t, log.String(), "no parser reads")
}
