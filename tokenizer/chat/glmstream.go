package chat

import (
	"bytes"

	"github.com/goart-dev/art"
)

// glmStream finds the call of a section, argument by argument. One without arguments is found when the section ends.
type glmStream struct {
	tags     [4]string
	tools    []art.Tool
	text     []byte // that was not read yet
	searched int    // how much of it was searched for the tag that is needed next
	begun    bool
	stopped  bool
	schema   *argumentSchema
	members  objectWriter
}

func streamGLM(f *replyFormat, tools []art.Tool) callStream {
	s := &glmStream{tools: tools}
	for i, tag := range glmTags {
		s.tags[i] = f.tag(tag)
	}
	return s
}

func (s *glmStream) add(text []byte, found callSink) {
	s.text = append(s.text, text...)
	for !s.stopped && s.step(found) {
	}
}

// step reads the name or an argument. It reports false if more of the text must come.
func (s *glmStream) step(found callSink) bool {
	tag := s.tags[0]
	if s.begun {
		tag = s.tags[3]
	}
	from := max(0, s.searched-len(tag))
	at := bytes.Index(s.text[from:], []byte(tag))
	if at < 0 {
		s.searched = len(s.text)
		return false
	}
	at += from
	if s.begun {
		at += len(tag)
		s.argument(s.text[:at], found)
	} else {
		s.name(s.text[:at], found)
	}
	s.text, s.searched = s.text[at:], 0
	return true
}

func (s *glmStream) name(head []byte, found callSink) {
	name, err := glmName(string(head))
	if s.stopped = err != nil || !isPlain(name); s.stopped {
		return
	}
	found.begin(name, "")
	found.grow("{")
	s.begun, s.schema = true, schemaOf(s.tools, name)
}

func (s *glmStream) argument(text []byte, found callSink) {
	key, value, rest, err := glmPair(string(bytes.TrimSpace(text)), s.tags, s.schema, &s.members)
	separator := ", "
	if s.members.empty() {
		separator = ""
	}
	if s.stopped = err != nil || rest != "" || s.members.add(key, value) != nil; !s.stopped {
		found.grow(separator + quote(key) + ": " + value)
	}
}
