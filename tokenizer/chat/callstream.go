package chat

import (
	"errors"
	"strings"

	"github.com/goart-dev/art"
)

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

// grow adds to the arguments of the last call.
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

// all returns the calls.
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

// grow continues it.
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
