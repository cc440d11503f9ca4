package tokenizer

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// fallbackIDs finds the tokens "<0x00>" to "<0xFF>".
func fallbackIDs(vocab map[string]int32) *[256]int32 {
	var out [256]int32
	for b := range out {
		id, ok := vocab[fmt.Sprintf("<0x%02X>", b)]
		if out[b] = id; !ok {
			out[b] = absent
		}
	}
	return &out
}

// covers reports whether all bytes of a text have ids.
func covers(fallback *[256]int32, text string) bool {
	if fallback == nil {
		return false
	}
	for i := range len(text) {
		if fallback[text[i]] == absent {
			return false
		}
	}
	return true
}

// byteFallbackStage joins the bytes of consecutive tokens like "<0x0A>". If they are not UTF-8, each of them becomes
// U+FFFD, so it emits nothing before another token comes.
type byteFallbackStage struct{ held []byte }

func (s *byteFallbackStage) push(text string, emit func(string)) {
	if b, ok := fallbackByte(text); ok {
		s.held = append(s.held, b)
		return
	}
	s.flush(emit)
	emit(text)
}

func (s *byteFallbackStage) flush(emit func(string)) {
	switch {
	case len(s.held) == 0:
		return
	case utf8.Valid(s.held):
		emit(string(s.held))
	default:
		for range s.held {
			emit(string(utf8.RuneError))
		}
	}
	s.held = s.held[:0]
}

// fallbackByte parses "<0x0A>".
func fallbackByte(text string) (byte, bool) {
	if len(text) != 6 || !strings.HasPrefix(text, "<0x") || text[5] != '>' {
		return 0, false
	}
	b, err := strconv.ParseUint(text[3:5], 16, 8)
	return byte(b), err == nil
}
