package tokenizer

import (
	"errors"
	"strings"
	"unicode/utf8"
)

// mapStage changes the text of each token independently.
type mapStage func(string) string

func (m mapStage) push(text string, emit func(string)) { emit(m(text)) }

func (mapStage) flush(func(string)) {}

// spacesStage writes a space between tokens: the behavior of files without a decoder.
type spacesStage struct{ started bool }

func (s *spacesStage) push(text string, emit func(string)) {
	if s.started {
		text = " " + text
	}
	s.started = true
	emit(text)
}

func (*spacesStage) flush(func(string)) {}

// bytesStage joins the bytes of byte-level tokens, and emits whole characters. Bytes that are not UTF-8 become U+FFFD.
type bytesStage struct{ held []byte }

func (s *bytesStage) push(text string, emit func(string)) {
	start := len(s.held)
	for _, r := range text {
		b, ok := byteOf(r)
		if !ok { // an added token, which is plain text
			s.held = append(s.held[:start], text...)
			break
		}
		s.held = append(s.held, b)
	}
	valid, rest := appendValid(nil, s.held)
	s.held = append(s.held[:0], rest...)
	emit(string(valid))
}

func (s *bytesStage) flush(emit func(string)) {
	if len(s.held) > 0 {
		emit(string(utf8.RuneError))
	}
	s.held = nil
}

func replaceDecoder(c replaceFile, fused bool) (func() stage, error) {
	find, err := c.Pattern.matcher()
	if err == nil && fused && (c.Pattern.String == nil || utf8.RuneCountInString(*c.Pattern.String) > 1) {
		err = errors.New("after Fuse, only one character can be replaced")
	}
	return func() stage {
		return mapStage(func(s string) string { return piece{text: s}.replaced(find, c.Content).text })
	}, err
}

// stripStage drops a character from the beginning and the end of the text, or of each token: at most start and stop
// times.
type stripStage struct {
	content     string
	start, stop int
	fused       bool
	dropped     int
	begun       bool // another character has come
	held        int  // how many of the character are at the end of the text so far
}

func stripDecoder(c struct {
	Content     string
	Start, Stop int
}, fused bool) (func() stage, error) {
	if utf8.RuneCountInString(c.Content) != 1 || c.Start < 0 || c.Stop < 0 {
		return nil, errors.New("content must be one character, start and stop at least 0")
	}
	return func() stage { return &stripStage{content: c.Content, start: c.Start, stop: c.Stop, fused: fused} }, nil
}

func (s *stripStage) push(text string, emit func(string)) {
	if !s.fused {
		emit(s.trim(text))
		return
	}
	for !s.begun && s.dropped < s.start && strings.HasPrefix(text, s.content) {
		text = text[len(s.content):]
		s.dropped++
	}
	s.begun = s.begun || text != ""
	if s.stop == 0 {
		emit(text)
		return
	}
	text = strings.Repeat(s.content, s.held) + text
	s.held = 0
	for s.held < s.stop && strings.HasSuffix(text, s.content) {
		text = text[:len(text)-len(s.content)]
		s.held++
	}
	emit(text)
}

func (s *stripStage) flush(func(string)) {}

// trim strips the text of one token.
func (s *stripStage) trim(text string) string {
	for i := 0; i < s.start && strings.HasPrefix(text, s.content); i++ {
		text = text[len(s.content):]
	}
	for i := 0; i < s.stop && strings.HasSuffix(text, s.content); i++ {
		text = text[:len(text)-len(s.content)]
	}
	return text
}

// suffixStage writes the suffix of a word as a space, and drops it at the end of the text.
type suffixStage struct {
	suffix string
	held   string
	some   bool
}

func bpeDecoder(c struct{ Suffix *string }, _ bool) (func() stage, error) {
	suffix := "</w>"
	if c.Suffix != nil {
		suffix = *c.Suffix
	}
	if suffix == "" {
		return nil, errors.New("suffix is empty")
	}
	return func() stage { return &suffixStage{suffix: suffix} }, nil
}

func (s *suffixStage) push(text string, emit func(string)) {
	if s.some {
		emit(strings.ReplaceAll(s.held, s.suffix, " "))
	}
	s.held, s.some = text, true
}

func (s *suffixStage) flush(emit func(string)) {
	if s.some {
		emit(strings.ReplaceAll(s.held, s.suffix, ""))
	}
	s.some = false
}
