package chat

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/goart-dev/art"
)

// jsonStream finds the calls in JSON objects, in sequence or in lists, that have the name before the arguments.
type jsonStream struct {
	keys    callKeys
	state   func(s *jsonStream, c byte, found callSink) // what the next byte is
	text    []byte                                      // of the string that is being read
	escaped bool                                        // its next byte
	value   jsonCopier
	key     string
	call    replyCall // what is known of the call of the object
}

func (k callKeys) stream(*replyFormat, []art.Tool) callStream {
	return &jsonStream{keys: k, state: (*jsonStream).outside}
}

func (s *jsonStream) add(text []byte, found callSink) {
	for len(text) > 0 && s.state != nil {
		if s.value.copying {
			var written []byte
			var n int
			written, n = s.value.add(text)
			found.grow(string(written))
			text = text[n:]
			continue
		}
		s.state(s, text[0], found)
		if !s.value.copying {
			text = text[1:]
		}
	}
}

func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\r' || c == '\n' }

// next sets the state after a byte, and stops if the byte is not one of those that may be there.
func (s *jsonStream) next(state func(s *jsonStream, c byte, found callSink), allowed bool) {
	if s.state = state; !allowed {
		s.state = nil
	}
}

// outside is between objects.
func (s *jsonStream) outside(c byte, _ callSink) {
	if c == '{' {
		s.call = replyCall{}
		s.next((*jsonStream).beforeKey, true)
		return
	}
	s.next(s.state, isSpace(c) || slices.Contains([]byte(",;[]"), c))
}

func (s *jsonStream) beforeKey(c byte, _ callSink) {
	switch c {
	case '"':
		s.text = append(s.text[:0], c)
		s.next((*jsonStream).inKey, true)
	case '}':
		s.next((*jsonStream).outside, true)
	default:
		s.next(s.state, isSpace(c) || c == ',')
	}
}

func (s *jsonStream) inKey(c byte, _ callSink) {
	if s.endsString(c) {
		s.next((*jsonStream).afterKey, json.Unmarshal(s.text, &s.key) == nil)
	}
}

// endsString takes the next byte of a string, and reports whether it is the last one.
func (s *jsonStream) endsString(c byte) bool {
	s.text = append(s.text, c)
	s.next(s.state, c >= ' ' && c != tokenByte[0])
	ends := c == '"' && !s.escaped
	s.escaped = c == '\\' && !s.escaped
	return ends
}

func (s *jsonStream) afterKey(c byte, _ callSink) {
	if c == ':' {
		s.next((*jsonStream).beforeValue, true)
		return
	}
	s.next(s.state, isSpace(c))
}

// beforeValue begins a call if the value is its arguments.
func (s *jsonStream) beforeValue(c byte, found callSink) {
	switch {
	case isSpace(c):
	case s.key == s.keys.arguments[0]:
		known := s.call.name != "" && (s.keys.id == "" || s.call.id != "")
		if s.next((*jsonStream).afterValue, known && c == '{'); s.state != nil {
			found.begin(s.call.name, s.call.id)
			s.value = jsonCopier{copying: true}
		}
	default:
		s.text = append(s.text[:0], c)
		s.next((*jsonStream).inString, c == '"')
	}
}

// inString reads a value: the members before the arguments are strings.
func (s *jsonStream) inString(c byte, _ callSink) {
	if !s.endsString(c) {
		return
	}
	var value string
	s.next((*jsonStream).afterValue, json.Unmarshal(s.text, &value) == nil)
	switch {
	case s.key == s.keys.name:
		s.call.name = value
	case s.keys.id != "" && s.key == s.keys.id:
		s.call.id = value
	}
}

func (s *jsonStream) afterValue(c byte, _ callSink) {
	switch c {
	case ',':
		s.next((*jsonStream).beforeKey, true)
	case '}':
		s.next((*jsonStream).outside, true)
	default:
		s.next(s.state, isSpace(c))
	}
}

// headStream finds calls of which each has a head that names the function, and a JSON object of arguments.
type headStream struct {
	begin, separator, end string // "" if there is none
	head                  func(head string) (name, id string)
	state                 func(s *headStream, found callSink) bool // reads some of the text; false if that needs more
	text                  []byte                                   // that was not read yet
	name, id              string
	value                 jsonCopier
}

// maxHead bounds how long the name of a function with what is around it may be, in bytes.
const maxHead = 300

func (t callTags) stream(f *replyFormat, _ []art.Tool) callStream {
	return &headStream{begin: f.tag(t.begin), separator: f.tag(t.separator), end: f.tag(t.end), head: t.head,
		state: (*headStream).beforeHead}
}

// streamMistral finds one call as its name, [ARGS] and its arguments.
func streamMistral(f *replyFormat, _ []art.Tool) callStream {
	return &headStream{separator: f.tag("[ARGS]"), head: mistralHead, state: (*headStream).inHead}
}

func streamFunctionary(*replyFormat, []art.Tool) callStream {
	head := func(head string) (name, id string) { return strings.TrimSpace(head), "" }
	return &headStream{separator: ">", head: head, state: (*headStream).inHead}
}

func streamBody(name string) callStream {
	return &headStream{name: name, state: (*headStream).beforeBody}
}

// isPlain reports whether a name has no characters that names of functions do not have and formats do.
func isPlain(name string) bool {
	return strings.TrimSpace(name) != "" && !strings.ContainsAny(name, "\"'<>{}[]\n") && !strings.Contains(name, tokenByte)
}

func (s *headStream) add(text []byte, found callSink) {
	s.text = append(s.text, text...)
	for s.state != nil && s.state(s, found) {
	}
}

func (s *headStream) stop() bool {
	s.state = nil
	return false
}

// skip drops white space and then a tag. stopped says that something else is there.
func (s *headStream) skip(tag string) (done, stopped bool) {
	s.text = bytes.TrimLeft(s.text, " \t\r\n")
	rest, done, stopped := cutTag(s.text, tag)
	s.text = rest
	return done, stopped
}

// cutTag cuts a tag from the beginning of a text. wrong says that the text begins with something else; if neither it
// nor done is true, more of the text must come.
func cutTag(text []byte, tag string) (rest []byte, done, wrong bool) {
	n := min(len(text), len(tag))
	if string(text[:n]) != tag[:n] {
		return text, false, true
	}
	if n < len(tag) {
		return text, false, false
	}
	return text[n:], true, false
}

func (s *headStream) beforeHead(callSink) bool {
	done, stopped := s.skip(s.begin)
	if stopped {
		return s.stop()
	}
	if done {
		s.state = (*headStream).inHead
	}
	return done
}

func (s *headStream) inHead(callSink) bool {
	head, rest, ok := bytes.Cut(s.text, []byte(s.separator))
	if !ok && len(s.text) <= maxHead {
		return false
	}
	if s.name, s.id = s.head(string(head)); !ok || !isPlain(s.name) || s.id != "" && !isPlain(s.id) {
		return s.stop()
	}
	s.text, s.state = rest, (*headStream).beforeBody
	return true
}

func (s *headStream) beforeBody(found callSink) bool {
	s.text = bytes.TrimLeft(s.text, " \t\r\n")
	if len(s.text) == 0 {
		return false
	}
	if s.text[0] != '{' {
		return s.stop()
	}
	found.begin(s.name, s.id)
	s.value, s.state = jsonCopier{copying: true}, (*headStream).inBody
	return true
}

func (s *headStream) inBody(found callSink) bool {
	written, n := s.value.add(s.text)
	found.grow(string(written))
	s.text = s.text[n:]
	switch {
	case s.value.copying:
		return false
	case s.end == "":
		return s.stop()
	}
	s.state = (*headStream).afterBody
	return true
}

func (s *headStream) afterBody(callSink) bool {
	done, stopped := s.skip(s.end)
	if stopped {
		return s.stop()
	}
	if done {
		s.state = (*headStream).beforeHead
	}
	return done
}
