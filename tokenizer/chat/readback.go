package chat

import (
	"fmt"
	"slices"
	"strings"

	"github.com/goart-dev/art"
)

// Warnings says which parts of replies are not understood: calls in a format that no parser reads, or parts that become
// content together with their tags.
func (t *Template) Warnings() []string {
	var out []string
	s := t.support()
	switch {
	case t.unparsed:
		out = append(out, "it writes tool calls in a format that no parser reads: calls will be content")
	case s.tools && t.reply.name == noTools:
		out = append(out, "it writes tools, but not how they are called: calls will be content")
	}
	plain := art.Assistant(probe)
	if said, written := t.readBack(plain); written && !contains(said, plain) {
		out = append(out, fmt.Sprintf("it writes a reply in parts that no parser reads: the content %q comes back as %.80q",
			probe, strings.TrimSpace(said[0].Content)))
	}
	return out
}

// contains reports whether one of several replies says the same as another.
func contains(said []art.Message, reply art.Message) bool {
	return slices.ContainsFunc(said, func(m art.Message) bool { return sameReply(&m, &reply) })
}

// findParser chooses the parser that reads what the template writes for a call: the detected one, if it can. For a
// template that writes no calls, the detected one is used as it is.
func (t *Template) findParser(detected, source string) {
	t.setParser(detected, source)
	t.probeAgain()
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
	t.setParser(noTools, source)
	t.unparsed = true
}

// writeCalls writes calls in place of a template that omits them, in the format that it tells the model to use.
func (t *Template) writeCalls(parser string) {
	if t.toolText.writeCalls = callWriters[parser]; t.toolText.writeCalls != nil {
		t.dialect.textArguments = true
		t.probeAgain()
	}
}

// setParser sets what reads replies.
func (t *Template) setParser(name, source string) {
	t.reply = t.tok.replyFormat(name, source)
	t.unparsed = false
}

// readBack parses what the template writes for a reply, as the last message and as an earlier one: templates may treat
// these differently. written is false if it writes nothing of the reply.
func (t *Template) readBack(reply art.Message) (said []art.Message, written bool) {
	said = t.readReply([]art.Message{art.User("a"), reply, art.User("a")}, probeTools(), probe)
	return said, len(said) > 0
}

// readReply parses what the template writes for the second message of a conversation: when it is the last one, and when
// others follow. Where the template fails, or the text lacks a sign of the reply, there is nothing to parse.
func (t *Template) readReply(conversation []art.Message, tools []art.Tool, sign string) []art.Message {
	var said []art.Message
	prompt, err := t.render(conversation[:1], tools, GenerationPrompt)
	if err != nil {
		return nil
	}
	before, _ := t.render(conversation[:1], tools, Whole) // if it fails, the text does not begin with it
	for n := 2; n <= len(conversation); n++ {
		whole, err := t.render(conversation[:n], tools, Whole)
		if err != nil || !strings.Contains(whole, sign) {
			continue
		}
		at, end := replyStart(before, prompt, whole), len(whole)
		for _, id := range t.stops {
			if i := strings.Index(whole[at:end], t.tok.written(id)); i >= 0 {
				end = at + i
			}
		}
		said = append(said, t.parseText(whole[:at], whole[at:end], 0, tools))
	}
	return said
}

// replyStart returns where a reply begins in a text, given the text before it and the prompt for it. The prompt may end
// differently, for example with the beginning of reasoning; then the reply begins after the last line or tag that both
// have in common.
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
