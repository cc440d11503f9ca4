package tokenizer

import (
	"strings"
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
	// isWord is \w of Unicode's regular expressions (UTS #18, annex C).
	isWord = class16(`[\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\u200c\u200d]`)
	// isNumber reports whether a character is a digit to the component Digits.
	isNumber         = class16(numberPattern)
	markClass        = class16(`[\p{M}\u1cf2\u1cf3]`)
	punctuationClass = class16(`[\p{P}$+<=>^` + "`" + `|~\u166d\x{111c9}]`)
)

// isMark reports whether StripAccents drops r: a mark of Unicode 9.
func isMark(r rune) bool { return markClass(r) && !unicode.Is(laterAccents, r) }

// isPunctuation reports whether r is punctuation to the component Punctuation: that of ASCII and of Unicode 8.
func isPunctuation(r rune) bool { return punctuationClass(r) && !unicode.Is(laterPunctuation, r) }

// lowercase maps each character independently of its context: a sigma at the end of a word is like any other.
func lowercase(p piece) piece {
	if strings.IndexFunc(p.text, func(r rune) bool { return r == 0x130 || lower(r) != r }) < 0 {
		return p
	}
	var changes []change
	for _, r := range p.text {
		if r == 0x130 { // İ becomes an i and the dot above
			changes = append(changes, change{'i', 0}, change{0x307, 1})
			continue
		}
		changes = append(changes, change{lower(r), 0})
	}
	return p.rewrite(changes)
}

// lower returns the lower case of Unicode 17.
func lower(r rune) rune {
	switch {
	case r == 0xa7cb:
		return 0x264
	case r == 0xa7dc:
		return 0x19b
	case r == 0x1c89, r == 0xa7cc, r == 0xa7ce, r == 0xa7d2, r == 0xa7d4, r == 0xa7da:
		return r + 1
	case 0x10d50 <= r && r <= 0x10d65:
		return r + 0x20
	case 0x16ea0 <= r && r <= 0x16eb8:
		return r + 0x1b
	}
	return unicode.ToLower(r)
}
