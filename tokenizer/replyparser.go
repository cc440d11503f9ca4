package tokenizer

import (
	"errors"
	"fmt"
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
	// bare is what a reply that is a call from its beginning begins with; "" when there is no such.
	bare string
	// parse reads a section. err says what is wrong with it; errNoCall that it is a text and not meant as a call.
	parse func(section string, tools []art.Tool) ([]art.ToolCall, error)
	// id names the i-th call of a reply that has no id of its own.
	id func(i int) string
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
	inBare // a reply that may be a call from its beginning
)

// replyParser reads a reply piece by piece. What it returns does not depend on where the pieces end: it goes on only
// when what comes can change nothing.
type replyParser struct {
	format  *replyFormat
	tools   []art.Tool
	state   state
	pending string // what was not decided yet
	section string // of calls
	held    string // content that may turn out to stand between calls
	segment bool   // there is more than white space since the last call
	trim    int    // line breaks that may still be dropped
	begun   bool   // there was reasoning already
	message art.Message
	errs    []error
	delta   Delta
}

// Delta is what a piece of a reply adds to its message.
type Delta struct {
	Reasoning, Content string
	ToolCalls          []art.ToolCall
}

func (f *replyFormat) start(thinking bool, tools []art.Tool) *replyParser {
	p := &replyParser{format: f, tools: tools, message: art.Message{Role: art.RoleAssistant}}
	if thinking && f.thinkOpen != "" {
		p.state, p.trim = inThought, 1
	}
	return p
}

// add takes a piece of the reply.
func (p *replyParser) add(text string) Delta {
	p.delta = Delta{}
	p.pending += text
	for p.step(false) {
	}
	return p.delta
}

// close ends the reply.
func (p *replyParser) close() (Delta, error) {
	p.delta = Delta{}
	for p.step(true) {
	}
	if p.segment || len(p.message.ToolCalls) == 0 {
		p.emit(p.held)
	}
	p.held = ""
	return p.delta, errors.Join(p.errs...)
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
	}
	return p.stepBare(final)
}

// stepStart looks for reasoning, and for a call that is all of the reply, behind white space.
func (p *replyParser) stepStart(final bool) bool {
	rest := strings.TrimLeft(p.pending, " \t\r\n\v\f")
	f := p.format
	switch {
	case f.thinkOpen != "" && !p.begun && strings.HasPrefix(rest, f.thinkOpen):
		p.pending, p.state, p.trim = rest[len(f.thinkOpen):], inThought, 1
	case !final && (rest == "" || f.thinkOpen != "" && strings.HasPrefix(f.thinkOpen, rest)):
		return false
	case f.calls.bare != "" && strings.HasPrefix(rest, f.calls.bare):
		p.state = inBare
	default:
		p.state = inContent
	}
	return true
}

// dropBreaks drops line breaks at the beginning of what is pending, as many as may be. It reports whether more may come.
func (p *replyParser) dropBreaks() bool {
	for p.trim > 0 && strings.HasPrefix(p.pending, "\n") {
		p.pending = p.pending[1:]
		p.trim--
	}
	if p.pending != "" {
		p.trim = 0
	}
	return p.trim > 0
}

func (p *replyParser) stepThought(final bool) bool {
	if p.dropBreaks() && !final {
		return false
	}
	at := strings.Index(p.pending, p.format.thinkClose)
	if at < 0 {
		keep := 0
		if !final {
			keep = max(overlap(p.pending, p.format.thinkClose), overlap(p.pending, "\n"+p.format.thinkClose))
		}
		p.think(p.pending[:len(p.pending)-keep])
		p.pending = p.pending[len(p.pending)-keep:]
		return false
	}
	p.think(strings.TrimSuffix(p.pending[:at], "\n"))
	p.pending = p.pending[at+len(p.format.thinkClose):]
	p.state, p.trim, p.begun = afterThought, 2, true
	return true
}

func (p *replyParser) think(s string) {
	s = withoutTokens(s)
	p.message.Reasoning += s
	p.delta.Reasoning += s
}

// stepAfterThought drops the line breaks behind reasoning.
func (p *replyParser) stepAfterThought(final bool) bool {
	if p.dropBreaks() && !final {
		return false
	}
	bare, rest := p.format.calls.bare, strings.TrimLeft(p.pending, " \t\r\n\v\f")
	switch {
	case bare != "" && strings.HasPrefix(rest, bare):
		p.state = inBare
	case bare != "" && rest == "" && !final:
		return false
	default:
		p.state = inContent
	}
	return true
}

func (p *replyParser) stepContent(final bool) bool {
	open := p.format.calls.open
	if open == "" {
		p.content(p.pending)
		p.pending = ""
		return false
	}
	at := strings.Index(p.pending, open)
	if at < 0 {
		keep := 0
		if !final {
			keep = overlap(p.pending, open)
		}
		p.content(p.pending[:len(p.pending)-keep])
		p.pending = p.pending[len(p.pending)-keep:]
		return false
	}
	p.content(p.pending[:at])
	p.pending, p.section, p.state = p.pending[at+len(open):], "", inCalls
	return true
}

// stepCalls looks for the end of a section of calls.
func (p *replyParser) stepCalls(final bool) bool {
	f := &p.format.calls
	nextOpen, end := strings.Index(p.pending, f.open), -1
	if f.close != "" {
		end = strings.Index(p.pending, f.close)
	}
	switch {
	case end >= 0 && (nextOpen < 0 || end < nextOpen):
		p.calls(p.section+p.pending[:end], f.close)
		p.pending, p.state = p.pending[end+len(f.close):], inContent
	case nextOpen >= 0 && f.close == "":
		p.calls(p.section+p.pending[:nextOpen], "")
		p.pending, p.section = p.pending[nextOpen+len(f.open):], ""
	case nextOpen >= 0: // another one begins before this one ends
		p.malformed(f.open+p.section+p.pending[:nextOpen], fmt.Errorf("it is not ended by %s before the next one", withoutTokens(f.close)))
		p.pending, p.section = p.pending[nextOpen+len(f.open):], ""
	case final && f.close == "":
		p.calls(p.section+p.pending, "")
		p.pending, p.state = "", inContent
	case final:
		p.malformed(f.open+p.section+p.pending, fmt.Errorf("it is not ended by %s", withoutTokens(f.close)))
		p.pending, p.state = "", inContent
	default:
		keep := max(overlap(p.pending, f.open), overlap(p.pending, f.close))
		p.section += p.pending[:len(p.pending)-keep]
		p.pending = p.pending[len(p.pending)-keep:]
		return false
	}
	return true
}

// stepBare waits for the end of the reply: only then is it known whether all of it is a call.
func (p *replyParser) stepBare(final bool) bool {
	if open := p.format.calls.open; open != "" {
		if at := strings.Index(p.pending, open); at >= 0 { // then what came before was a text
			p.state = inContent
			return true
		}
	}
	if !final {
		return false
	}
	calls, err := p.format.calls.parse(p.pending, p.tools)
	switch {
	case err == nil:
		p.take(calls)
	case errors.Is(err, errNoCall):
		p.content(p.pending)
	default:
		p.malformed(p.pending, err)
	}
	p.pending, p.state = "", inContent
	return false
}

// calls reads a section of calls.
func (p *replyParser) calls(section, end string) {
	calls, err := p.format.calls.parse(section, p.tools)
	if err != nil {
		if errors.Is(err, errNoCall) {
			err = errors.New("there is no call in it")
		}
		p.malformed(p.format.calls.open+section+end, err)
		return
	}
	p.take(calls)
}

// take adds calls. A line break before them is not content, nor is white space between calls.
func (p *replyParser) take(calls []art.ToolCall) {
	if text := strings.TrimSuffix(p.held, "\n"); p.segment || len(p.message.ToolCalls) == 0 {
		p.emit(text)
	}
	p.held, p.segment = "", false
	for _, c := range calls {
		if c.ID == "" {
			c.ID = p.format.calls.id(len(p.message.ToolCalls))
		}
		p.message.ToolCalls = append(p.message.ToolCalls, c)
		p.delta.ToolCalls = append(p.delta.ToolCalls, c)
	}
}

// malformed reports a call that cannot be read, and keeps its text.
func (p *replyParser) malformed(text string, err error) {
	p.errs = append(p.errs, &MalformedCall{withoutTokens(text), err})
	p.content(text)
}

// content takes text that is no call. What may belong to a call that follows is held back.
func (p *replyParser) content(s string) {
	p.held += withoutTokens(s)
	if !p.segment && strings.TrimSpace(p.held) == "" && len(p.message.ToolCalls) > 0 {
		return
	}
	p.segment = p.segment || strings.TrimSpace(p.held) != ""
	text := strings.TrimSuffix(p.held, "\n")
	p.emit(text)
	p.held = p.held[len(text):]
}

func (p *replyParser) emit(s string) {
	p.message.Content += s
	p.delta.Content += s
}

// withoutTokens returns text with tags as their characters.
func withoutTokens(s string) string { return strings.ReplaceAll(s, tokenByte, "") }

// callID is the id of a call that has none.
func callID(i int) string { return "call_" + strconv.Itoa(i) }
