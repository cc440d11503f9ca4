package tokenizer

import (
	"testing"
	"unicode/utf8"
)

// lossy returns b as valid UTF-8, with U+FFFD for what is left at its end too.
func lossy(b []byte) string {
	text, rest := appendValid(make([]byte, 0, len(b)), b)
	if len(rest) > 0 {
		text = utf8.AppendRune(text, utf8.RuneError)
	}
	return string(text)
}

func TestLossy(t *testing.T) {
	for in, want := range map[string]string{
		"":                         "",
		"aé日😀":                     "aé日😀",
		"\xff":                     "\uFFFD",
		"\xe3\x81":                 "\uFFFD",
		"\xe3\x81a":                "\uFFFDa",
		"\xe3\x81\xe3\x81\x82":     "\uFFFDあ",
		"\xe0\x80\x80":             "\uFFFD\uFFFD\uFFFD",
		"\xf0\x9f\x98\xf0\x9f\x98": "\uFFFD\uFFFD",
		"\xed\xa0\x80":             "\uFFFD\uFFFD\uFFFD",
		"\uFFFD":                   "\uFFFD",
	} {
		if got := lossy([]byte(in)); got != want || !utf8.ValidString(got) {
			t.Errorf("%+q becomes %+q, want %+q", in, got, want)
		}
	}
}
