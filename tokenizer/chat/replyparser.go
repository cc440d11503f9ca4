package chat

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/goart-dev/art"
)

// MalformedCall is what Close and Parse report about tool calls that cannot be parsed. Their text is part of the
// content.
type MalformedCall struct {
	Text string
	Err  error
}

// Error implements error.
func (m *MalformedCall) Error() string {
	return fmt.Sprintf("chat: the tool call %.200q cannot be read: %v", m.Text, m.Err)
}

// Unwrap returns what is wrong.
func (m *MalformedCall) Unwrap() error { return m.Err }

// state is where a parser is in a reply.
type state int

const (
	atStart state = iota // only white space so far
	inReasoning
	inThoughtCall  // from a tag in reasoning on that begins calls
	afterReasoning // before anything else
	inContent
	inCalls
	inBareCall // a reply that may be a call from its first character
	inHeader   // of a Harmony message
	inBody     // of a Harmony message
)

// replyParser parses a reply chunk by chunk. Its result does not depend on where the chunks end: it decides about a
// text only once nothing that may follow changes the decision. It takes time linear in the text, however that is cut.
type replyParser struct {
	format    *replyFormat
	tools     []art.Tool
	state     state
	pending   []byte // not decided yet
	seen      int    // how much of it was searched already
	opened    string // the tag that began the pending section of calls
	section   sectionReader
	held      []byte // content that may turn out to be between calls; white space unless segment
	segment   bool   // there is more than white space since the last call
	trim      int    // line breaks that may still be dropped
	begun     bool   // there was reasoning already
	part      harmonyPart
	content   strings.Builder
	reasoning strings.Builder
	calls     callList
	message   art.Message // set when the reply is closed
	errs      []error
	ended     bool // the model has ended its turn

	early      bool       // calls are given while they grow
	stream     callStream // of the pending section of calls; nil if there is none
	streamed   int        // how much of the section it has got
	begunCalls int        // how many calls of the section have begun
}

func (f *replyFormat) start(thinking bool, tools []art.Tool) *replyParser {
	p := &replyParser{format: f, tools: tools, calls: callList{ids: callIDs{rule: f.calls.id}}}
	if f.calls.harmony {
		p.state = inHeader
	}
	if thinking && f.thinkOpen != "" {
		p.state, p.trim = inReasoning, 1
	}
	return p
}

// add takes the next chunk of the reply.
func (p *replyParser) add(text string) Delta {
	since := p.position()
	p.pending = append(p.pending, text...)
	for p.step(false) {
	}
	return p.since(since)
}

// close ends the reply.
func (p *replyParser) close() (Delta, error) {
	since := p.position()
	for p.step(true) {
	}
	if p.segment || len(p.calls.list) == 0 {
		p.content.Write(p.held)
	}
	p.held = nil
	p.message = art.Message{Role: art.RoleAssistant, Content: p.content.String(), Reasoning: p.reasoning.String(),
		ToolCalls: p.calls.all()}
	return p.since(since), errors.Join(p.errs...)
}

// position is how much of the texts of a message there is.
type position struct{ reasoning, content int }

func (p *replyParser) position() position {
	return position{p.reasoning.Len(), p.content.Len()}
}

// since returns what was added to the message.
func (p *replyParser) since(at position) Delta {
	return Delta{
		Reasoning: p.reasoning.String()[at.reasoning:], Content: p.content.String()[at.content:],
		ToolCalls: p.calls.take(),
	}
}

// step decides about the beginning of the pending text, and reports whether it did. final says that nothing follows.
func (p *replyParser) step(final bool) bool {
	switch p.state {
	case atStart:
		return p.stepStart(final)
	case inReasoning:
		return p.stepReasoning(final)
	case inThoughtCall:
		return p.stepThoughtCall(final)
	case afterReasoning:
		return p.stepAfterReasoning(final)
	case inContent:
		return p.stepContent(final)
	case inCalls:
		return p.stepCalls(final)
	case inHeader:
		return p.stepHeader(final)
	case inBody:
		return p.stepBody(final)
	}
	return p.stepBareCall(final)
}

// enter drops n pending bytes and continues in another state.
func (p *replyParser) enter(next state, n int) {
	p.state, p.pending, p.seen = next, p.pending[n:], 0
}

// afterSpace returns the pending text after white space, or the beginning of it.
func (p *replyParser) afterSpace() string {
	for p.seen < len(p.pending) && strings.IndexByte(" \t\r\n\v\f", p.pending[p.seen]) >= 0 {
		p.seen++
	}
	// More than a tag is never needed.
	return string(p.pending[p.seen:min(len(p.pending), p.seen+len(p.format.thinkOpen)+1)])
}

// stepStart looks for reasoning, and for a call that is the whole reply, after white space.
func (p *replyParser) stepStart(final bool) bool {
	f, rest := p.format, p.afterSpace()
	switch {
	case f.thinkOpen != "" && !p.begun && strings.HasPrefix(rest, f.thinkOpen):
		p.enter(inReasoning, p.seen+len(f.thinkOpen))
		p.trim = 1
	case !final && (rest == "" || f.thinkOpen != "" && strings.HasPrefix(f.thinkOpen, rest)):
		return false
	case f.calls.isBare(rest):
		p.enter(inBareCall, 0)
	default:
		p.enter(inContent, 0)
	}
	return true
}

// isBare reports whether a reply that begins like this may be a call without tags.
func (f *callFormat) isBare(text string) bool {
	return text != "" && strings.IndexByte(f.bare, text[0]) >= 0
}

// dropBreaks drops pending line breaks, at most trim of them. It reports whether more may follow.
func (p *replyParser) dropBreaks() bool {
	for p.trim > 0 && len(p.pending) > 0 && p.pending[0] == '\n' {
		p.pending = p.pending[1:]
		p.trim--
	}
	if len(p.pending) > 0 {
		p.trim = 0
	}
	return p.trim > 0
}

func (p *replyParser) stepReasoning(final bool) bool {
	if p.dropBreaks() && !final {
		return false
	}
	end, open := p.format.thinkClose, p.format.calls.open
	if at := bytes.Index(p.pending, []byte(end)); at >= 0 {
		p.endThought(at)
		return true
	}
	if at := bytes.Index(p.pending, []byte(open)); at >= 0 && open != "" {
		at = len(bytes.TrimSuffix(p.pending[:at], []byte("\n")))
		p.think(p.pending[:at])
		p.enter(inThoughtCall, at)
		return true
	}
	n := len(p.pending)
	if !final {
		n -= max(p.overlap(end), p.overlap("\n"+end), p.overlap(open), p.overlap("\n"+open))
	}
	p.think(p.pending[:n])
	p.pending = p.pending[n:]
	return false
}

// endThought takes the end of reasoning at the n-th pending byte.
func (p *replyParser) endThought(n int) {
	p.think(bytes.TrimSuffix(p.pending[:n], []byte("\n")))
	p.enter(afterReasoning, n+len(p.format.thinkClose))
	p.trim, p.begun = 2, true
}

// overlap returns how many bytes at the end of the pending text may be the beginning of a tag.
func (p *replyParser) overlap(tag string) int {
	for n := min(len(p.pending), len(tag)-1); n > 0; n-- {
		if string(p.pending[len(p.pending)-n:]) == tag[:n] {
			return n
		}
	}
	return 0
}

func (p *replyParser) think(s []byte) { p.reasoning.WriteString(withoutTokens(string(s))) }

// stepAfterReasoning drops the line breaks after reasoning.
func (p *replyParser) stepAfterReasoning(final bool) bool {
	if p.dropBreaks() && !final {
		return false
	}
	rest := p.afterSpace()
	switch {
	case p.format.calls.isBare(rest):
		p.enter(inBareCall, 0)
	case p.format.calls.bare != "" && rest == "" && !final:
		return false
	default:
		p.enter(inContent, 0)
	}
	return true
}

// withoutTokens returns text in which tags are spelled out.
func withoutTokens(s string) string { return strings.ReplaceAll(s, tokenByte, "") }

// stepThoughtCall waits for the end of reasoning in which a tag begins calls.
//
// Calls within reasoning are thoughts: models weigh calls, and quote the syntax of calls. But where the model ends its
// turn right after complete calls, and has never closed its reasoning, it has called, and forgot the tag: these are
// calls, as for vLLM (its reasoning parsers of Qwen3, Kimi K2 and DeepSeek end reasoning at a call) and SGLang
// (tool_start_token). As a thought, the action would be lost, and a reply without any answer be trained on. Unlike
// them, this parser leaves a thought alone that goes on after a call, and one that a limit of tokens or a stop string
// cuts off, be it right after a call: the model did not choose to end there, and an action that it only considered must
// not be carried out.
//
// Therefore reasoning from such a tag on is not given before it is over.
func (p *replyParser) stepThoughtCall(final bool) bool {
	end := []byte(p.format.thinkClose)
	from := max(0, p.seen-len(end))
	if at := bytes.Index(p.pending[from:], end); at >= 0 {
		p.endThought(from + at)
		return true
	}
	if p.seen = len(p.pending); !final {
		return false
	}
	if at, ok := p.callsAtEnd(); ok {
		p.think(bytes.TrimSuffix(p.pending[:at], []byte("\n")))
		p.begun = true
		p.enter(inContent, at)
		return true
	}
	p.think(p.pending)
	p.enter(inReasoning, len(p.pending))
	return false
}

// callsAtEnd returns where the calls begin with which the model has ended its turn.
func (p *replyParser) callsAtEnd() (at int, ok bool) {
	if !p.ended {
		return 0, false
	}
	r := p.format.start(false, p.tools)
	r.state, r.pending = inContent, slices.Clone(p.pending)
	before := 0 // calls that are followed by text
	for more := true; more; {
		more = r.step(true)
		if !r.segment {
			continue
		}
		at, before = len(p.pending)-len(r.pending), len(r.calls.list)
		if r.state == inCalls {
			at -= len(r.opened)
		}
	}
	return at, len(r.calls.list) > before
}
