package chat

import (
	"bytes"

	"github.com/goart-dev/art"
)

// xmlStream finds the calls of an xmlSyntax, parameter by parameter.
type xmlStream struct {
	syntax   xmlSyntax
	tools    []art.Tool
	text     []byte // that was not read yet
	searched int    // how much of it has no end of a parameter
	stopped  bool
	inside   bool // a function
	schema   *argumentSchema
	members  objectWriter
}

func (s xmlSyntax) stream(f *replyFormat, tools []art.Tool) callStream {
	if s.marker != "" {
		s = s.withMarker(f.tag(s.marker))
	}
	return &xmlStream{syntax: s, tools: tools}
}

func (s *xmlStream) add(text []byte, found callSink) {
	if s.syntax.marker == "" {
		text = []byte(withoutTokens(string(text)))
	}
	s.text = append(s.text, text...)
	for !s.stopped && s.step(found) {
	}
}

// step reads the beginning of a function, its end or a parameter. It reports false if more of the text must come.
func (s *xmlStream) step(found callSink) bool {
	if s.searched == 0 {
		s.text = bytes.TrimLeft(s.text, " \t\r\n")
	}
	if !s.inside {
		return s.function(found)
	}
	if rest, ended, _ := cutTag(s.text, s.syntax.functionEnd); ended {
		found.grow("}")
		s.text, s.inside, s.searched = rest, false, 0
		return true
	}
	return s.parameter(found)
}

// function begins a call.
func (s *xmlStream) function(found callSink) bool {
	rest, ok, wrong := cutTag(s.text, s.syntax.function)
	head, rest, named := bytes.Cut(rest, []byte(s.syntax.named))
	if wrong || !named && len(head) > maxHead || named && !isPlain(string(head)) {
		s.stopped = true
	}
	if s.stopped || !ok || !named {
		return false
	}
	found.begin(string(head), "")
	found.grow("{")
	s.text, s.inside, s.members = rest, true, objectWriter{}
	s.schema = schemaOf(s.tools, string(head))
	return true
}

// parameter reads one of which the end has come.
func (s *xmlStream) parameter(found callSink) bool {
	end := []byte(s.syntax.parameterEnd)
	from := max(0, s.searched-len(end))
	at := bytes.Index(s.text[from:], end)
	if at < 0 {
		s.searched = len(s.text)
		return false
	}
	at += from + len(end)
	key, value, rest, err := s.syntax.nextParameter(string(s.text[:at]), s.schema, &s.members)
	separator := ", "
	if s.members.empty() {
		separator = ""
	}
	if err != nil || rest != "" || s.members.add(key, value) != nil {
		s.stopped = true
		return false
	}
	found.grow(separator + quote(key) + ": " + value)
	s.text, s.searched = s.text[at:], 0
	return true
}
