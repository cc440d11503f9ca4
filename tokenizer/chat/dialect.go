package chat

import (
	"cmp"
	"strings"

	"github.com/goart-dev/art/internal/jinja"
)

// dialect is the form in which a template takes messages that call tools. Some templates concatenate the arguments with
// strings, some iterate over them; some fail on a message without content, some omit the calls of one with content.
type dialect struct {
	textArguments bool // arguments are the text of an object, not the object
	content       contentForm
	resultNames   bool // a result must say which function it is of
}

// contentForm is the content of a message with calls and no text.
type contentForm uint8

const (
	contentAsIs  contentForm = iota // null or empty, as the message has it
	contentEmpty                    // the empty string
	contentNull                     // null
)

// findDialect renders conversations with a call in each dialect. It returns the first of those that write the call
// unchanged most often and fail least often; among these, one that prints no null.
//
// Templates may treat the last message differently from earlier ones, so a call is probed in both positions.
func (t *Template) findDialect() dialect {
	var best dialect
	var most probeResult
	for _, arguments := range []bool{false, true} {
		null := t.probeCalls(dialect{textArguments: arguments, content: contentNull})
		empty := t.probeCalls(dialect{textArguments: arguments, content: contentEmpty})
		found, form := empty, contentEmpty
		switch null.compare(empty) {
		case 1:
			found, form = null, contentNull
		case 0:
			form = contentAsIs
		}
		if most.compare(found) < 0 {
			best, most = dialect{textArguments: arguments, content: form}, found
		}
	}
	return best
}

// probeResult says what a template did with conversations that contain a call.
type probeResult struct {
	written  int // how many contain the call unchanged
	rendered int // how many are no error
	nulls    int // that were printed
}

// compare returns 1 if p is the better one, -1 if o is, and 0 if they are equally good.
func (p probeResult) compare(o probeResult) int {
	return cmp.Or(cmp.Compare(p.written, o.written), cmp.Compare(p.rendered, o.rendered), cmp.Compare(o.nulls, p.nulls))
}

// probeCalls renders a call as the last message, before its result, and as an earlier message.
func (t *Template) probeCalls(d dialect) (p probeResult) {
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

// writesCall reports whether a text has the name and the arguments of the call, and not as Python prints a dict.
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

// apply changes a message to the dialect. In a message without calls, null means the same as an empty content, and no
// template needs null there.
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
		parseArguments(calls)
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
