package tokenizer

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/goart-dev/art"
)

// ErrToolsLeftOut says that a chat template does not write tools, or calls of tools, that a conversation has: the model
// would not see them.
var ErrToolsLeftOut = errors.New("the chat template leaves tools out")

// support is what a template writes of tools.
type support struct {
	tools bool // what they are
	calls bool // the calls of earlier messages
	all   bool // of several calls in a message
}

// findSupport tries a tool and a call. A template that fails on both is not said to leave them out.
func (t *Template) findSupport() (s support) {
	conversation, failed := probeConversation(), 0
	for _, messages := range [][]art.Message{conversation[:1], {art.System("a"), conversation[0]}} {
		text, err := t.render(messages, probeTools(), Reply)
		s.tools = s.tools || err == nil && strings.Contains(text, probeTool)
		if err != nil {
			failed++
		}
	}
	s.tools = s.tools || failed == 2
	text, err := t.render(conversation[:2], probeTools(), Whole)
	s.calls = err != nil || strings.Contains(text, probe)
	call := conversation[1].ToolCalls[0]
	call.Name = probeSecond
	conversation[1].ToolCalls = append(conversation[1].ToolCalls, call)
	text, err = t.render(conversation[:2], probeTools(), Whole)
	s.all = err != nil || strings.Contains(text, probeSecond)
	return s
}

// WritesTools tells whether the prompt says what the tools of a conversation are.
func (t *Template) WritesTools() bool { return t.support().tools }

// WritesCalls tells whether the prompt says which tools earlier messages called.
func (t *Template) WritesCalls() bool { return t.support().calls }

// checkTools reports tools and calls that are not in the text of a conversation.
func (t *Template) checkTools(text string, messages []art.Message, tools []art.Tool) error {
	for i := range tools {
		if !t.support().tools || !strings.Contains(text, tools[i].Name) && !strings.Contains(text, escaped(tools[i].Name)) {
			return t.leftOut("tool " + tools[i].Name)
		}
	}
	for i := range messages {
		for j, c := range messages[i].ToolCalls {
			if !t.support().calls || j > 0 && !t.support().all {
				return t.leftOut(fmt.Sprintf("call of %s in message %d", c.Name, i))
			}
		}
	}
	return nil
}

// escaped returns a name as it stands in JSON.
func escaped(name string) string {
	quoted := quote(name)
	return quoted[1 : len(quoted)-1]
}

func (t *Template) leftOut(what string) error {
	return fmt.Errorf("tokenizer: %w: template %q does not write the %s; the option ToolFormat (%s) writes them for it",
		ErrToolsLeftOut, t.name, what, strings.Join(ToolFormats(), ", "))
}

// Warnings tells what replies may say that is not understood: calls in a format that no parser reads, or parts that
// become content with their tags.
func (t *Template) Warnings() []string {
	var out []string
	s := t.support()
	switch {
	case t.unread:
		out = append(out, "it writes tool calls in a form that no parser reads: calls will be content")
	case s.tools && t.reply.name == NoTools:
		out = append(out, "it writes tools, but not how they are called: calls will be content")
	}
	plain := art.Assistant(probe)
	if said, written := t.readBack(plain); written && !contains(said, plain) {
		out = append(out, fmt.Sprintf("it writes a reply in parts that no parser reads: the content %q comes back as %.80q",
			probe, strings.TrimSpace(said[0].Content)))
	}
	return out
}

// contains tells whether one of some replies says the same as another.
func contains(said []art.Message, reply art.Message) bool {
	return slices.ContainsFunc(said, func(m art.Message) bool { return sameReply(&m, &reply) })
}

// findParser takes the parser that reads what the template writes for a call: the one that was detected, if it does. A
// template that writes none is believed.
func (t *Template) findParser(detected, source string) {
	t.setParser(detected, source)
	t.support = sync.OnceValue(t.findSupport)
	call := probeConversation()[1]
	if !t.support().calls {
		t.writeCalls(detected)
	}
	if _, written := t.readBack(call); !written {
		return
	}
	for _, name := range append([]string{detected}, Parsers()...) {
		t.setParser(name, source)
		if said, _ := t.readBack(call); contains(said, call) {
			return
		}
	}
	t.setParser(NoTools, source)
	t.unread = true
}

// writeCalls writes calls for a template that leaves them out, in the format that it tells the model to use.
func (t *Template) writeCalls(parser string) {
	if t.written.calls = callWriters[parser]; t.written.calls != nil {
		t.dialect.textArguments = true
		t.support = sync.OnceValue(t.findSupport)
	}
}

// setParser sets what reads replies.
func (t *Template) setParser(name, source string) {
	t.reply = t.tok.replyFormat(name, source)
	t.unread = false
}

// readBack reads what the template writes for a reply, as the last message and as an earlier one: templates may treat
// them differently. written is false where it writes none of it.
func (t *Template) readBack(reply art.Message) (said []art.Message, written bool) {
	conversation := []art.Message{art.User("a"), reply, art.User("a")}
	prompt, err := t.render(conversation[:1], probeTools(), Reply)
	if err != nil {
		return nil, false
	}
	before, _ := t.render(conversation[:1], probeTools(), Whole) // no beginning of the text when it fails
	for n := 2; n <= len(conversation); n++ {
		whole, err := t.render(conversation[:n], probeTools(), Whole)
		if err != nil || !strings.Contains(whole, probe) {
			continue
		}
		at, end := replyStart(before, prompt, whole), len(whole)
		for _, id := range t.stops {
			if i := strings.Index(whole[at:end], t.tok.Decode([]int32{id}, false)); i >= 0 {
				end = at + i
			}
		}
		said = append(said, t.parseText(whole[:at], whole[at:end], 0, nil))
	}
	return said, len(said) > 0
}

// replyStart returns where a reply begins in a text, given what is before it, and the prompt for it. The prompt may end
// otherwise, such as with the beginning of reasoning; then what both have up to the end of a line or a tag is no part of
// the reply.
func replyStart(before, prompt, whole string) int {
	n := 0
	for n < min(len(prompt), len(whole)) && prompt[n] == whole[n] {
		n++
	}
	if n == len(prompt) {
		return n
	}
	start := 1 + strings.LastIndexAny(whole[:n], "\n>")
	if strings.HasPrefix(whole, before) {
		start = max(start, len(before))
	}
	return start
}
