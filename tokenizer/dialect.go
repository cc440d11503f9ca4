package tokenizer

import (
	"strings"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/internal/jinja"
)

// dialect is how a template wants messages that call tools. Templates differ: some join the arguments with texts, some
// take them apart; some fail on a message without content, some leave out the calls of one with content.
type dialect struct {
	textArguments bool // arguments are the text of an object, not the object
	content       contentForm
}

// contentForm is what stands for the content of a message with calls and no text.
type contentForm uint8

const (
	contentAsIs  contentForm = iota // null or empty, as the message has it
	contentEmpty                    // a text of no length
	contentNull                     // null
)

// The parts of a call that no template writes of itself.
const (
	probeKey   = "k8w4y"
	probeValue = "v3j6u"
)

// findDialect tries the dialects and returns the first in which the template writes a call as it is. It is the zero one
// when there is none: then the template has no tools, or fails for another reason.
func (t *Template) findDialect() dialect {
	for _, arguments := range []bool{false, true} {
		null, okNull := t.probeCall(dialect{arguments, contentNull})
		empty, okEmpty := t.probeCall(dialect{arguments, contentEmpty})
		switch {
		case okNull && okEmpty && nulls(null) <= nulls(empty):
			return dialect{arguments, contentAsIs}
		case okEmpty:
			return dialect{arguments, contentEmpty}
		case okNull:
			return dialect{arguments, contentNull}
		}
	}
	return dialect{}
}

// probeCall renders a call in a dialect, and tells whether its name and its arguments are there, and not as Python prints
// a dict.
func (t *Template) probeCall(d dialect) (text string, ok bool) {
	m := *t
	m.dialect = d
	call := art.ToolCall{ID: mistralID(0), Name: probe, Arguments: `{"` + probeKey + `": "` + probeValue + `"}`}
	tool := art.Tool{Name: "a", Description: "a", Parameters: []byte(`{"type": "object", "properties": {}}`)}
	text, err := m.Text([]art.Message{art.User("a"), {Role: art.RoleAssistant, ToolCalls: []art.ToolCall{call}}}, []art.Tool{tool}, Whole)
	if err != nil {
		return "", false
	}
	for _, part := range []string{probe, probeKey, probeValue} {
		if !strings.Contains(text, part) {
			return "", false
		}
	}
	return text, !strings.Contains(text, "{'"+probeKey)
}

// nulls counts what templates print for a content that is null.
func nulls(text string) int { return strings.Count(text, "None") + strings.Count(text, "null") }

// apply writes the value of a message in the dialect.
func (d dialect) apply(message *jinja.Dict) {
	calls, ok := message.Get("tool_calls")
	if !ok {
		return
	}
	if !d.textArguments {
		openArguments(calls)
	}
	content, _ := message.Get("content")
	if content != nil && content != "" || len(jinja.Items(calls)) == 0 {
		return
	}
	switch d.content {
	case contentEmpty:
		message.Set("content", "")
	case contentNull:
		message.Set("content", nil)
	}
}
