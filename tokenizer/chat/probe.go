package chat

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/internal/jinja"
)

// Names that no template writes by itself: finding one in rendered text means that the template wrote the message.
const (
	probe      = "x7q9z" // the content of a reply, and the name of a call
	probeKey   = "k8w4y"
	probeValue = "v3j6u"
	probeTool  = "t5m2e"
	probeID    = "p4h8n2c6a" // as long as Mistral's templates demand
	// probeSecond is the name of a second call.
	probeSecond = "s9d1r"
)

// probeConversation is a question, a call, its result, an answer and another question.
func probeConversation() []art.Message {
	call := art.ToolCall{ID: probeID, Name: probe, Arguments: `{"` + probeKey + `": "` + probeValue + `"}`}
	result := art.ToolResult(call.ID, "a")
	result.Name = probe
	return []art.Message{
		art.User("a"), {Role: art.RoleAssistant, ToolCalls: []art.ToolCall{call}}, result, art.Assistant("a"), art.User("a"),
	}
}

// probeReply is a question, a reply of a shape, the results of its calls with an answer, and another question.
func probeReply(shape replyShape) []art.Message {
	reply := art.Message{Role: art.RoleAssistant}
	if shape.content {
		reply.Content = "a"
	}
	if shape.reasoning {
		reply.Reasoning = "a"
	}
	conversation := []art.Message{art.User("a"), {}}
	for i, name := range []string{probe, probeSecond}[:shape.calls] {
		id := []string{"k00000001", "k00000002"}[i]
		reply.ToolCalls = append(reply.ToolCalls, art.ToolCall{ID: id, Name: name, Arguments: "{}"})
		result := art.ToolResult(id, "a")
		result.Name = name
		conversation = append(conversation, result)
	}
	if conversation[1] = reply; shape.calls > 0 {
		conversation = append(conversation, art.Assistant("a"))
	}
	return append(conversation, art.User("a"))
}

// probeTools is a tool that the probes do not call.
func probeTools() []art.Tool {
	return []art.Tool{{Name: probeTool, Description: "a", Parameters: []byte(`{"type": "object", "properties": {}}`)}}
}

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

// ErrToolsLeftOut says that a chat template does not write the tools, or tool calls, of a conversation: the model would
// not see them.
var ErrToolsLeftOut = errors.New("the chat template leaves tools out")

// toolSupport is what a template writes of tools.
type toolSupport struct {
	tools bool // their descriptions
	calls bool // the calls of earlier messages
	all   bool // all calls of a message, not only the first
}

// findSupport tries a tool and a call. A template that fails on both is not said to omit them.
func (t *Template) findSupport() (s toolSupport) {
	conversation, failed := probeConversation(), 0
	for _, messages := range [][]art.Message{conversation[:1], {art.System("a"), conversation[0]}} {
		text, err := t.render(messages, probeTools(), GenerationPrompt)
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

// WritesTools reports whether prompts describe the tools of a conversation.
func (t *Template) WritesTools() bool { return t.support().tools }

// WritesCalls reports whether prompts say which tools earlier messages called.
func (t *Template) WritesCalls() bool { return t.support().calls }

// checkTools reports tools and calls that are missing from the text of a conversation.
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

// escaped returns a name as it is written inside a JSON string.
func escaped(name string) string {
	quoted := quote(name)
	return quoted[1 : len(quoted)-1]
}

func (t *Template) leftOut(what string) error {
	return fmt.Errorf("chat: %w: template %q does not write the %s; "+
		"the option ToolFormat (%s) writes them into messages instead",
		ErrToolsLeftOut, t.name, what, strings.Join(ToolFormats(), ", "))
}

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
		// They are written in its place, in the format that it tells the model to use.
		if t.toolText.writeCalls = callWriters[detected]; t.toolText.writeCalls != nil {
			t.dialect.textArguments = true
			t.probeAgain()
		}
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
