package tokenizer

import (
	"sync"
	"unicode"

	"github.com/goart-dev/art/internal/onig"
)

// The components of the reference have tables of several Unicode versions. Which version each has was found by trying
// every code point; see make_unicodetables.py.

// class16 returns a test of a class of Unicode 16, compiled on first use.
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

// isNumber reports whether r is a digit to the component Digits.
func isNumber(r rune) bool { return numberClass(r) }

// isMark reports whether StripAccents drops r: a mark of Unicode 9.
func isMark(r rune) bool { return markClass(r) && !unicode.Is(laterAccents, r) }

// isPunctuation reports whether r is punctuation to the component Punctuation: that of ASCII and of Unicode 8.
func isPunctuation(r rune) bool { return punctuationClass(r) && !unicode.Is(laterPunctuation, r) }
