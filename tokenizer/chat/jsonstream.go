package chat

import (
	"encoding/json"
	"slices"

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
