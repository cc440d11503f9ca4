package tokenizer

import "strings"

// Stream decodes one reply as it is sampled. Its deltas are valid UTF-8, and their concatenation is what
// [Tokenizer.Decode] returns for all ids, up to a stop string. It is not safe for concurrent use.
type Stream struct {
	tok         *Tokenizer
	skipSpecial bool
	stops       []string
	decoding    *decoding
	held        string // may be the beginning of a stop string
	stopped     bool
}

// Stream begins to decode a reply, which ends before the first stop string.
func (t *Tokenizer) Stream(skipSpecial bool, stops ...string) *Stream {
	s := &Stream{tok: t, skipSpecial: skipSpecial, decoding: t.decoder.start()}
	for _, stop := range stops {
		if stop != "" {
			s.stops = append(s.stops, stop)
		}
	}
	return s
}

// Add takes one id, and returns the text that is final, which may be "". stopped says that there was a stop string:
// later ids are ignored.
func (s *Stream) Add(id int32) (delta string, stopped bool) {
	if s.stopped {
		return "", true
	}
	if s.tok.shown(id, s.skipSpecial) {
		s.decoding.push(s.tok.texts[id])
	}
	return s.release(s.decoding.take())
}

// Flush returns the text that was held back, once no id follows.
func (s *Stream) Flush() string {
	if s.stopped {
		return ""
	}
	s.decoding.flush()
	delta, stopped := s.release(s.decoding.take())
	if !stopped {
		delta += s.held
	}
	s.held = ""
	return delta
}

// release returns the text before anything that may be the beginning of a stop string.
func (s *Stream) release(text string) (delta string, stopped bool) {
	text = s.held + text
	if at := firstOf(text, s.stops); at >= 0 {
		s.held, s.stopped = "", true
		return text[:at], true
	}
	keep := 0
	for _, stop := range s.stops {
		keep = max(keep, overlap(text, stop))
	}
	s.held = text[len(text)-keep:]
	return text[:len(text)-keep], false
}

// firstOf returns the offset of the first stop string, or -1.
func firstOf(text string, stops []string) int {
	first := -1
	for _, stop := range stops {
		if at := strings.Index(text, stop); at >= 0 && (first < 0 || at < first) {
			first = at
		}
	}
	return first
}

// overlap returns the length of the longest suffix of text that is a proper prefix of stop.
func overlap(text, stop string) int {
	for n := min(len(text), len(stop)-1); n > 0; n-- {
		if strings.HasSuffix(text, stop[:n]) {
			return n
		}
	}
	return 0
}
