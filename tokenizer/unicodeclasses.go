package tokenizer

import (
	"sync"
	"unicode"

	"github.com/goart-dev/art/internal/onig"
)

// What Hugging Face's library (tokenizers 0.23.3) takes a character for depends on the component: each has the tables of
// another Unicode version. These were found by asking it about every code point.

// class16 returns a test of a class of Unicode 16, made when it is first needed.
func class16(pattern string) func(rune) bool {
	test := sync.OnceValue(func() func(rune) bool { return onig.Class(pattern) })
	return func(r rune) bool { return test()(r) }
}

var (
	wordClass        = class16(`[\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\u200c\u200d]`)
	numberClass      = class16(numberPattern)
	markClass        = class16(`[\p{M}\u1cf2\u1cf3]`)
	punctuationClass = class16(`[\p{P}$+<=>^` + "`" + `|~\u166d\x{111c9}]`)
)

// isWord is \w of Unicode's regular expressions (UTS #18, annex C).
func isWord(r rune) bool { return wordClass(r) }

// isNumber is what the component Digits takes for one.
func isNumber(r rune) bool { return numberClass(r) }

// isMark is what StripAccents drops: the marks of Unicode 9.
func isMark(r rune) bool { return markClass(r) && !unicode.Is(laterAccents, r) }

// isPunctuation is what the component Punctuation takes for one: ASCII's, and Unicode 8's.
func isPunctuation(r rune) bool { return punctuationClass(r) && !unicode.Is(laterPunctuation, r) }
