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
	early       int    // ids left whose text does not stop the reply
	stop        string // that was found
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

// StopAfter makes stop strings count only if they end in the text of an id after the first n. It is called before Add,
// and returns the stream.
func (s *Stream) StopAfter(n int) *Stream {
	s.early = n
	return s
}

// Stopped returns the stop string that was found, "" if none was.
func (s *Stream) Stopped() string { return s.stop }

// Add takes one id, and returns the text that is final, which may be "". stopped says that there was a stop string:
// later ids are ignored.
func (s *Stream) Add(id int32) (delta string, stopped bool) {
	if s.stop != "" {
		return "", true
	}
	s.early--
	if s.tok.shown(id, s.skipSpecial) {
		s.decoding.push(s.tok.decoded[id])
	}
	return s.release(s.decoding.take())
}

// Flush returns the text that was held back, once no id follows.
func (s *Stream) Flush() string {
	if s.stop != "" {
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
	known := len(s.held)
	text = s.held + text
	if at, stop := firstOf(text, s.stops, known); at >= 0 && s.early < 0 {
		s.held, s.stop = "", stop
		return text[:at], true
	}
	keep := 0
	for _, stop := range s.stops {
		keep = max(keep, overlap(text, stop))
	}
	s.held = text[len(text)-keep:]
	return text[:len(text)-keep], false
}

// firstOf returns the offset of the first stop string that does not end in the first known bytes, or -1.
func firstOf(text string, stops []string, known int) (first int, found string) {
	first = -1
	for _, stop := range stops {
		from := max(0, known-len(stop)+1)
		if at := strings.Index(text[from:], stop); at >= 0 && (first < 0 || from+at < first) {
			first, found = from+at, stop
		}
	}
	return first, found
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
