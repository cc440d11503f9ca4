package chat

import "bytes"

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
			s.step(rest[0])
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

// step scans a byte that begins no tag.
func (s *sectionReader) step(c byte) {
	switch {
	case s.escaped:
		s.escaped = false
	case s.inside && c == '\\':
		s.escaped = s.quote != 0
	case s.inside && c == s.quote:
		s.inside = false
	case !s.inside && bytes.IndexByte([]byte(s.format.values.quotes), c) >= 0:
		s.inside, s.quote = true, c
	}
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
