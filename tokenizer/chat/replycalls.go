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

// callStream finds the calls of a section that grows, before it is known whether the section can be parsed. It finds
// only those that the parser of the section finds too, if that accepts the section. After anything unusual it finds
// nothing more.
type callStream interface {
	// add takes the next text of the section.
	add(text []byte, found callSink)
}

// callSink takes what a callStream finds.
type callSink interface {
	begin(name, id string)
	grow(arguments string) // of the call that began last
}

// replyCall is a call of a reply that is being read.
type replyCall struct {
	id, name  string
	arguments []byte
}

// callList is the calls of a reply.
type callList struct {
	ids  callIDs
	list []*replyCall
	out  []CallDelta // since the last take
}

// begin adds a call without arguments. id is the one that the model wrote, if it wrote any.
func (l *callList) begin(name, id string) {
	id = l.ids.next(name, id)
	l.out = append(l.out, CallDelta{Index: len(l.list), ID: id, Name: name})
	l.list = append(l.list, &replyCall{id: id, name: name})
}

func (l *callList) grow(arguments string) {
	if arguments == "" {
		return
	}
	last := len(l.list) - 1
	l.list[last].arguments = append(l.list[last].arguments, arguments...)
	if n := len(l.out); n > 0 && l.out[n-1].Index == last {
		l.out[n-1].Arguments += arguments
		return
	}
	l.out = append(l.out, CallDelta{Index: last, Arguments: arguments})
}

// take returns what was added since the last time.
func (l *callList) take() []CallDelta {
	out := l.out
	l.out = nil
	return out
}

func (l *callList) all() []art.ToolCall {
	var out []art.ToolCall
	for _, c := range l.list {
		out = append(out, art.ToolCall{ID: c.id, Name: c.name, Arguments: string(c.arguments)})
	}
	return out
}

// errOtherCall is about a section that has other calls once all of it is there, for example because of a second name.
var errOtherCall = errors.New("its beginning is another call than the whole")

// begin begins a call that a stream has found.
func (p *replyParser) begin(name, id string) {
	p.endText()
	p.calls.begin(name, id)
	p.begunCalls++
}

func (p *replyParser) grow(arguments string) { p.calls.grow(arguments) }

// openStream begins to look for calls in the pending text, if they are wanted early.
func (p *replyParser) openStream(s callStream) {
	p.stream, p.streamed, p.begunCalls = nil, 0, 0
	if p.early {
		p.stream = s
	}
}

// growCalls looks for calls in the first n pending bytes.
func (p *replyParser) growCalls(n int) {
	if p.stream != nil && n > p.streamed {
		p.stream.add(p.pending[p.streamed:n], p)
		p.streamed = n
	}
}

// settle completes the calls that a stream has begun by those of the whole section. It reports false if these are
// others.
func (p *replyParser) settle(calls []art.ToolCall) bool {
	begun := p.calls.list[len(p.calls.list)-p.begunCalls:]
	if len(calls) < len(begun) {
		return false
	}
	for i, b := range begun {
		c := calls[i]
		if c.Name != b.name || !strings.HasPrefix(c.Arguments, string(b.arguments)) ||
			i < len(begun)-1 && len(c.Arguments) != len(b.arguments) {
			return false
		}
	}
	if n := len(begun); n > 0 {
		p.calls.grow(calls[n-1].Arguments[len(begun[n-1].arguments):])
	}
	return true
}

// valueSyntax tells where the values of a section of calls are. A tag that would end the section is text in them.
type valueSyntax struct {
	quotes     string // the characters that quote a value, in which a backslash escapes the next one
	begin, end string // the tags around a value, in formats without quotes; they may be the same
	last       bool   // a section ends with a value: the end tag of that may be missing
}

// sectionReader finds the end of a section of calls in a text that grows. It scans each byte once.
type sectionReader struct {
	format  *callFormat
	at      int    // how much of the text was scanned
	inside  bool   // a value
	quote   byte   // that ends the value
	escaped bool   // by the backslash before
	tag     string // the first tag that was found within a value, "" if there is none
	tagAt   int    // where it begins
}

// end returns where the tag that ends the section begins, and the tag. ok is false if there is none yet. final says
// that nothing follows.
func (s *sectionReader) end(text []byte, final bool) (at int, tag string, ok bool) {
	f := s.format
	for s.at < len(text) {
		rest := text[s.at:]
		tag, partial := tagAtStart(rest, f.open, f.close, f.values.begin, f.values.end)
		switch {
		case partial && !final:
			return len(text), "", false
		case tag == "":
			switch c := rest[0]; {
			case s.escaped:
				s.escaped = false
			case s.inside && c == '\\':
				s.escaped = s.quote != 0
			case s.inside && c == s.quote:
				s.inside = false
			case !s.inside && bytes.IndexByte([]byte(s.format.values.quotes), c) >= 0:
				s.inside, s.quote = true, c
			}
		case tag == f.values.begin || tag == f.values.end:
			ends := tag == f.values.end && (s.inside || tag != f.values.begin)
			if s.inside && !ends && s.tag != "" { // the value before it has no end
				return s.tagAt, s.tag, true
			}
			s.inside = !ends
		case !s.inside:
			return s.at, tag, true
		case s.tag == "":
			s.tag, s.tagAt = tag, s.at
		}
		s.escaped = s.escaped && tag == ""
		s.at += max(1, len(tag))
	}
	return len(text), "", false
}

// mayEnd reports whether a section that has no end may end at the first tag within a value. Where nothing but the tag
// tells that the value is over, what the tag stands before must: the end of the reply, or another section.
func (s *sectionReader) mayEnd(text []byte) bool {
	if !s.format.values.last || s.tag == "" {
		return s.tag != ""
	}
	after := bytes.TrimLeft(text[s.tagAt+len(s.tag):], " \t\r\n")
	return s.inside && (len(after) == 0 || bytes.HasPrefix(after, []byte(s.format.open)))
}

// tagAtStart returns the tag that a text begins with. partial says that it may begin with one once more of it has come.
// Empty tags are ignored.
func tagAtStart(text []byte, tags ...string) (tag string, partial bool) {
	for _, tag := range tags {
		if tag == "" || text[0] != tag[0] {
			continue
		}
		if len(text) < len(tag) && string(text) == tag[:len(text)] {
			return "", true
		}
		if bytes.HasPrefix(text, []byte(tag)) {
			return tag, false
		}
	}
	return "", false
}
