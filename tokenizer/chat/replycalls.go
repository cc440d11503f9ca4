package chat

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/goart-dev/art"
)

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

// find returns where the first of some tags is in the pending text that was not searched yet, and which tag. If there
// is none, tag is "" and at is how much of the text can be decided.
func (p *replyParser) find(final bool, tags ...string) (at int, tag string) {
	for ; p.seen < len(p.pending); p.seen++ {
		tag, partial := tagAtStart(p.pending[p.seen:], tags...)
		if tag != "" || partial && !final {
			return p.seen, tag
		}
	}
	return len(p.pending), ""
}

// open begins a section of calls at the n-th pending byte.
func (p *replyParser) open(n int, opened string) {
	p.enter(inCalls, n)
	f := &p.format.calls
	p.opened, p.section = opened, sectionReader{format: f}
	p.openStream(nil)
	if p.early && f.stream != nil && opened != "" {
		p.openStream(f.stream(p.format, p.tools))
	}
}

// stepCalls looks for the end of a section of calls.
func (p *replyParser) stepCalls(final bool) bool {
	end, tag, ok := p.section.end(p.pending, final)
	switch {
	case p.section.tag != "": // it is not known yet whether what follows is a value
		p.growCalls(p.section.tagAt)
	case ok || final:
		p.growCalls(end)
	default:
		p.growCalls(p.section.at)
	}
	if !ok && !final {
		return false
	}
	calls, err := p.read(end, tag)
	if err != nil && p.section.mayEnd(p.pending) { // it was no value after all, and the first tag in it counts
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

// read parses the pending section up to the n-th byte, where tag is; "" for the end of the reply.
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

// report takes the result of parsing the pending section up to the n-th byte.
func (p *replyParser) report(n int, tag string, calls []art.ToolCall, err error) {
	text := p.opened + string(p.pending[:n])
	if tag == p.format.calls.close {
		text += tag
	}
	if err != nil && p.opened == "" && !strings.Contains(text, p.format.calls.closed) { // it mentions the tag
		p.text(text)
		return
	}
	p.accept(text, calls, err)
}

// accept takes the calls that a text was parsed as, or reports what is wrong with it.
func (p *replyParser) accept(text string, calls []art.ToolCall, err error) {
	switch {
	case err == nil && p.settle(calls):
		p.take(calls[p.begunCalls:])
	case p.begunCalls > 0:
		p.fail(text, cmp.Or(err, errOtherCall))
	default:
		p.malformed(text, err)
	}
}

// stepBareCall waits for the end of the reply: only then is it known whether the whole reply is a call.
func (p *replyParser) stepBareCall(final bool) bool {
	if open := p.format.calls.open; open != "" {
		if bytes.Contains(p.pending[max(0, p.seen-len(open)):], []byte(open)) { // what came before it was a text
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

// take adds calls.
func (p *replyParser) take(calls []art.ToolCall) {
	p.endText()
	for _, c := range calls {
		p.calls.begin(c.Name, c.ID)
		p.calls.grow(c.Arguments)
	}
}

// endText ends the text before calls. Line breaks before them are not content, and neither is white space between
// calls.
func (p *replyParser) endText() {
	if p.segment || len(p.calls.list) == 0 {
		p.content.Write(p.format.calls.beforeBreaks(p.held))
	}
	p.held, p.segment = nil, false
}

// fail reports calls that cannot be parsed.
func (p *replyParser) fail(text string, err error) {
	p.errs = append(p.errs, &MalformedCall{withoutTokens(text), err})
}

// malformed reports calls that cannot be parsed, and keeps their text.
func (p *replyParser) malformed(text string, err error) {
	p.fail(text, err)
	p.text(text)
}

// text takes text that is not a call. White space that may belong to a following call is held back.
func (p *replyParser) text(s string) {
	s = withoutTokens(s)
	p.held = append(p.held, s...)
	p.segment = p.segment || strings.TrimSpace(s) != ""
	if !p.segment && len(p.calls.list) > 0 {
		return
	}
	text := p.format.calls.beforeBreaks(p.held)
	p.content.Write(text)
	p.held = p.held[len(text):]
}

// beforeBreaks returns a text without the line breaks at its end that are not content if a section of calls follows.
func (f *callFormat) beforeBreaks(text []byte) []byte {
	for range max(1, f.breaks) {
		text = bytes.TrimSuffix(text, []byte("\n"))
	}
	return text
}
