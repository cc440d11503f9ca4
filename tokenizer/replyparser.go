package tokenizer

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/goart-dev/art"
)

// A reply reaches its parser as text in which a token that the vocabulary has for a tag is that tag behind a byte that
// is never part of UTF-8. So the same characters in other tokens are content.
const tokenByte = "\xff"

// replyFormat is how a model writes what it thinks and the tools it calls.
type replyFormat struct {
	name       string
	thinkOpen  string // "" when the format tells no reasoning apart
	thinkClose string
	calls      callFormat
	tags       []string         // those that the vocabulary has tokens for, as they stand in the text of a reply
	tagOf      map[int32]string // the same by their tokens
}

// callFormat is one way to write tool calls.
type callFormat struct {
	open  string // begins a section of calls; "" when there is none
	close string // ends it; "" for the next open and the end of the reply
	// inner are the tags within a section.
	inner []string
	// bare are the characters that a reply begins with which is a call from its beginning.
	bare string
	// bareOpen is what a section begins with whose open the model left out; "" when it cannot be told from a text. closed
	// is what such a section must have to be meant as a call.
	bareOpen, closed string
	// values tells which parts of a section are values, in which tags are text.
	values valueSyntax
	// complete says that what parse takes is whole: a section may be read although its close is missing.
	complete bool
	// parse reads a section. err says what is wrong with it; errNoCall that it is a text and not meant as a call.
	parse func(section string, tools []art.Tool) ([]art.ToolCall, error)
	// id names the i-th call of a reply that has no id of its own.
	id func(i int) string
	// channels says that replies are parts with a header each, and has no other fields but id and inner then.
	channels bool
}

// MalformedCall is what Close and Parse report about tool calls that cannot be read. Their text is part of the content.
type MalformedCall struct {
	Text string
	Err  error
}

// Error implements error.
func (m *MalformedCall) Error() string {
	return fmt.Sprintf("tokenizer: the tool call %.200q cannot be read: %v", m.Text, m.Err)
}

// Unwrap returns what is wrong.
func (m *MalformedCall) Unwrap() error { return m.Err }

// state is where a parser is in a reply.
type state int

const (
	atStart      state = iota // before anything but white space
	inThought                 // within reasoning
	afterThought              // behind it, before anything
	inContent
	inCalls
	inBare   // a reply that may be a call from its beginning
	inHeader // of a part of a reply in channels
	inBody   // of such a part
)

// replyParser reads a reply piece by piece. What it returns does not depend on where the pieces end: it goes on only
// when what comes can change nothing. It takes time linear in the text, however that is cut.
type replyParser struct {
	format    *replyFormat
	tools     []art.Tool
	state     state
	pending   []byte // what was not decided yet
	seen      int    // how much of it was looked at already
	opened    string // what began the section of calls that is pending
	section   sectionReader
	held      []byte // content that may turn out to stand between calls; blank unless segment
	segment   bool   // there is more than white space since the last call
	trim      int    // line breaks that may still be dropped
	begun     bool   // there was reasoning already
	part      channelPart
	content   strings.Builder
	reasoning strings.Builder
	message   art.Message // its texts are there when the reply is closed
	errs      []error
}

// Delta is what a piece of a reply adds to its message.
type Delta struct {
	Reasoning, Content string
	ToolCalls          []art.ToolCall
}

func (f *replyFormat) start(thinking bool, tools []art.Tool) *replyParser {
	p := &replyParser{format: f, tools: tools, message: art.Message{Role: art.RoleAssistant}}
	if f.calls.channels {
		p.state = inHeader
	}
	if thinking && f.thinkOpen != "" {
		p.state, p.trim = inThought, 1
	}
	return p
}

// add takes a piece of the reply.
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
	if p.segment || len(p.message.ToolCalls) == 0 {
		p.content.Write(p.held)
	}
	p.held = nil
	p.message.Content, p.message.Reasoning = p.content.String(), p.reasoning.String()
	return p.since(since), errors.Join(p.errs...)
}

// position is how much of a message there is.
type position struct{ reasoning, content, calls int }

func (p *replyParser) position() position {
	return position{p.reasoning.Len(), p.content.Len(), len(p.message.ToolCalls)}
}

// since returns what was added to the message.
func (p *replyParser) since(at position) Delta {
	return Delta{
		Reasoning: p.reasoning.String()[at.reasoning:], Content: p.content.String()[at.content:],
		ToolCalls: slices.Clone(p.message.ToolCalls[at.calls:]),
	}
}

// step decides about the beginning of what is pending, and reports whether it did. final says that nothing follows.
func (p *replyParser) step(final bool) bool {
	switch p.state {
	case atStart:
		return p.stepStart(final)
	case inThought:
		return p.stepThought(final)
	case afterThought:
		return p.stepAfterThought(final)
	case inContent:
		return p.stepContent(final)
	case inCalls:
		return p.stepCalls(final)
	case inHeader:
		return p.stepHeader(final)
	case inBody:
		return p.stepBody(final)
	}
	return p.stepBare(final)
}

// enter goes on with what is pending from the n-th byte, in another state.
func (p *replyParser) enter(next state, n int) {
	p.state, p.pending, p.seen = next, p.pending[n:], 0
}

// behindSpace returns what is pending behind white space.
func (p *replyParser) behindSpace() string {
	for p.seen < len(p.pending) && strings.IndexByte(" \t\r\n\v\f", p.pending[p.seen]) >= 0 {
		p.seen++
	}
	// What is looked for is a short tag.
	return string(p.pending[p.seen:min(len(p.pending), p.seen+len(p.format.thinkOpen)+1)])
}

// stepStart looks for reasoning, and for a call that is all of the reply, behind white space.
func (p *replyParser) stepStart(final bool) bool {
	f, rest := p.format, p.behindSpace()
	switch {
	case f.thinkOpen != "" && !p.begun && strings.HasPrefix(rest, f.thinkOpen):
		p.enter(inThought, p.seen+len(f.thinkOpen))
		p.trim = 1
	case !final && (rest == "" || f.thinkOpen != "" && strings.HasPrefix(f.thinkOpen, rest)):
		return false
	case f.calls.isBare(rest):
		p.enter(inBare, 0)
	default:
		p.enter(inContent, 0)
	}
	return true
}

// isBare tells whether a reply that begins so may be a call from its beginning.
func (f *callFormat) isBare(text string) bool {
	return text != "" && strings.IndexByte(f.bare, text[0]) >= 0
}

// dropBreaks drops line breaks at the beginning of what is pending, as many as may be. It reports whether more may come.
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

func (p *replyParser) stepThought(final bool) bool {
	if p.dropBreaks() && !final {
		return false
	}
	end := p.format.thinkClose
	at := bytes.Index(p.pending, []byte(end))
	if at < 0 {
		n := len(p.pending)
		if !final {
			n -= max(p.overlap(end), p.overlap("\n"+end))
		}
		p.think(p.pending[:n])
		p.pending = p.pending[n:]
		return false
	}
	p.think(bytes.TrimSuffix(p.pending[:at], []byte("\n")))
	p.enter(afterThought, at+len(end))
	p.trim, p.begun = 2, true
	return true
}

// overlap returns how many bytes at the end of what is pending may be the beginning of a tag.
func (p *replyParser) overlap(tag string) int {
	return overlap(string(p.pending[max(0, len(p.pending)-len(tag)):]), tag)
}

func (p *replyParser) think(s []byte) { p.reasoning.WriteString(withoutTokens(string(s))) }

// stepAfterThought drops the line breaks behind reasoning.
func (p *replyParser) stepAfterThought(final bool) bool {
	if p.dropBreaks() && !final {
		return false
	}
	rest := p.behindSpace()
	switch {
	case p.format.calls.isBare(rest):
		p.enter(inBare, 0)
	case p.format.calls.bare != "" && rest == "" && !final:
		return false
	default:
		p.enter(inContent, 0)
	}
	return true
}

// stepContent looks for the beginning of a section of calls.
func (p *replyParser) stepContent(final bool) bool {
	at, opened := p.find(final, p.format.calls.open, p.format.calls.bareOpen)
	p.text(string(p.pending[:at]))
	switch opened {
	case "":
		p.enter(inContent, at)
		return false
	case p.format.calls.bareOpen: // it is part of the section
		p.open(at, "")
	default:
		p.open(at+len(opened), opened)
	}
	return true
}

// find returns where one of the tags is in what was not looked at yet, and which; "" and how much can be decided when
// there is none.
func (p *replyParser) find(final bool, tags ...string) (at int, tag string) {
	for ; p.seen < len(p.pending); p.seen++ {
		tag, partial := tagAtStart(p.pending[p.seen:], tags...)
		if tag != "" || partial && !final {
			return p.seen, tag
		}
	}
	return len(p.pending), ""
}

// open begins a section of calls at the n-th byte of what is pending.
func (p *replyParser) open(n int, opened string) {
	p.enter(inCalls, n)
	p.opened, p.section = opened, sectionReader{format: &p.format.calls}
}

// stepCalls looks for the end of a section of calls.
func (p *replyParser) stepCalls(final bool) bool {
	end, tag, ok := p.section.end(p.pending, final)
	if !ok && !final {
		return false
	}
	calls, err := p.read(end, tag)
	if p.section.tag != "" && err != nil { // then what was taken for a value is none, and the first tag in it counts
		end, tag = p.section.tagAt, p.section.tag
		calls, err = p.read(end, tag)
	}
	p.report(end, tag, calls, err)
	if tag != "" && tag == p.format.calls.open {
		p.open(end+len(tag), tag)
	} else {
		p.enter(inContent, end+len(tag))
	}
	return true
}

// read reads the section that is pending up to the n-th byte, where tag is; "" for the end of the reply.
func (p *replyParser) read(n int, tag string) ([]art.ToolCall, error) {
	f := &p.format.calls
	calls, err := f.parse(string(p.pending[:n]), p.tools)
	switch {
	case errors.Is(err, errNoCall):
		err = errors.New("there is no call in it")
	case f.close == "" || tag == f.close || p.opened == "" || err == nil && f.complete:
	case tag == "":
		err = fmt.Errorf("it is not ended by %s", withoutTokens(f.close))
	default:
		err = fmt.Errorf("it is not ended by %s before the next one", withoutTokens(f.close))
	}
	return calls, err
}

// report takes what was read of a section that is pending up to the n-th byte.
func (p *replyParser) report(n int, tag string, calls []art.ToolCall, err error) {
	text := p.opened + string(p.pending[:n])
	if tag == p.format.calls.close {
		text += tag
	}
	switch {
	case err == nil:
		p.take(calls)
	case p.opened == "" && !strings.Contains(text, p.format.calls.closed): // a text that names the tag
		p.text(text)
	default:
		p.malformed(text, err)
	}
}

// stepBare waits for the end of the reply: only then is it known whether all of it is a call.
func (p *replyParser) stepBare(final bool) bool {
	if open := p.format.calls.open; open != "" {
		if bytes.Contains(p.pending[max(0, p.seen-len(open)):], []byte(open)) { // then what came before was a text
			p.enter(inContent, 0)
			return true
		}
		p.seen = len(p.pending)
	}
	if !final {
		return false
	}
	text := string(p.pending)
	calls, err := p.format.calls.parse(text, p.tools)
	switch {
	case err == nil:
		p.take(calls)
	case errors.Is(err, errNoCall):
		p.text(text)
	default:
		p.malformed(text, err)
	}
	p.enter(inContent, len(p.pending))
	return false
}

// take adds calls. A line break before them is not content, nor is white space between calls.
func (p *replyParser) take(calls []art.ToolCall) {
	if p.segment || len(p.message.ToolCalls) == 0 {
		p.content.Write(bytes.TrimSuffix(p.held, []byte("\n")))
	}
	p.held, p.segment = nil, false
	for _, c := range calls {
		if c.ID == "" {
			c.ID = p.format.calls.id(len(p.message.ToolCalls))
		}
		p.message.ToolCalls = append(p.message.ToolCalls, c)
	}
}

// malformed reports a call that cannot be read, and keeps its text.
func (p *replyParser) malformed(text string, err error) {
	p.errs = append(p.errs, &MalformedCall{withoutTokens(text), err})
	p.text(text)
}

// text takes text that is no call. What may belong to a call that follows is held back.
func (p *replyParser) text(s string) {
	s = withoutTokens(s)
	p.held = append(p.held, s...)
	p.segment = p.segment || strings.TrimSpace(s) != ""
	if !p.segment && len(p.message.ToolCalls) > 0 {
		return
	}
	text := bytes.TrimSuffix(p.held, []byte("\n"))
	p.content.Write(text)
	p.held = p.held[len(text):]
}

// withoutTokens returns text with tags as their characters.
func withoutTokens(s string) string { return strings.ReplaceAll(s, tokenByte, "") }

// callID is the id of a call that has none.
func callID(i int) string { return "call_" + strconv.Itoa(i) }
