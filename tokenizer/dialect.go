package tokenizer

import (
	"cmp"
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
	probeTool  = "t5m2e"
	// probeSecond is the name of a second call.
	probeSecond = "s9d1r"
)

// findDialect renders conversations with a call in each dialect. It returns the first of those that fail least often and
// write the call as it is most often; among them, one that prints no null.
//
// Templates may treat the last message otherwise than those before it, so a call is probed at both places.
func (t *Template) findDialect() dialect {
	var best dialect
	var most probed
	for _, arguments := range []bool{false, true} {
		null, empty := t.probeCalls(dialect{arguments, contentNull}), t.probeCalls(dialect{arguments, contentEmpty})
		found, form := empty, contentEmpty
		switch null.compare(empty) {
		case 1:
			found, form = null, contentNull
		case 0:
			form = contentAsIs
		}
		if most.compare(found) < 0 {
			best, most = dialect{arguments, form}, found
		}
	}
	return best
}

// probed says how a template took conversations with a call.
type probed struct {
	written  int // how many have the call as it is
	rendered int // how many are no error
	nulls    int // that were printed
}

// compare returns 1 when p is the better one, -1 when o is, and 0 when they are as good.
func (p probed) compare(o probed) int {
	return cmp.Or(cmp.Compare(p.written, o.written), cmp.Compare(p.rendered, o.rendered), cmp.Compare(o.nulls, p.nulls))
}

// probeCalls renders a call as the last message, before its result, and as part of the past.
func (t *Template) probeCalls(d dialect) (p probed) {
	m := *t
	m.dialect = d
	conversation := probeConversation()
	for _, n := range []int{2, 3, len(conversation)} {
		text, err := m.render(conversation[:n], probeTools(), Whole)
		if err != nil {
			continue
		}
		p.rendered++
		p.nulls += nulls(text)
		if writesCall(text) {
			p.written++
		}
	}
	return p
}

// probeConversation is a question, a call, its result, an answer and another question.
func probeConversation() []art.Message {
	call := art.ToolCall{ID: mistralID(0), Name: probe, Arguments: `{"` + probeKey + `": "` + probeValue + `"}`}
	result := art.ToolResult(call.ID, "a")
	result.Name = probe
	return []art.Message{
		art.User("a"), {Role: art.RoleAssistant, ToolCalls: []art.ToolCall{call}}, result, art.Assistant("a"), art.User("a"),
	}
}

// probeTools is a tool whose name no template writes of itself.
func probeTools() []art.Tool {
	return []art.Tool{{Name: probeTool, Description: "a", Parameters: []byte(`{"type": "object", "properties": {}}`)}}
}

// writesCall tells whether a text has the name and the arguments of the call, and not as Python prints a dict.
func writesCall(text string) bool {
	for _, part := range []string{probe, probeKey, probeValue} {
		if !strings.Contains(text, part) {
			return false
		}
	}
	return !strings.Contains(text, "{'"+probeKey)
}

// nulls counts what templates print for a content that is null.
func nulls(text string) int { return strings.Count(text, "None") + strings.Count(text, "null") }

// apply writes the value of a message in the dialect. Null means the same as an empty content in a message without calls,
// and there no template needs it.
func (d dialect) apply(message *jinja.Dict) {
	content, _ := message.Get("content")
	calls, _ := message.Get("tool_calls")
	if len(jinja.Items(calls)) == 0 {
		if content == nil {
			message.Set("content", "")
		}
		return
	}
	if !d.textArguments {
		openArguments(calls)
	}
	if content != nil && content != "" {
		return
	}
	switch d.content {
	case contentEmpty:
		message.Set("content", "")
	case contentNull:
		message.Set("content", nil)
	}
}
