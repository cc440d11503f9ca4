package tokenizer

import (
	"strings"
	"unicode/utf8"
)

// parter cuts a text before spaces that no merge crosses. Vocabularies of SentencePiece come without a pre-tokenizer, so
// a whole text is one word, but hardly one of their tokens has a space behind another character. The parts merge
// independently of one another, and can be cached.
type parter struct {
	before map[rune]bool // characters that a token has before a space
}

// metaspaceRune is how SentencePiece writes a space.
const metaspaceRune = '▁'

// newParter looks at the tokens that merges make. It returns nil when it would hardly ever cut.
func newParter(texts func(yield func(string))) *parter {
	p := &parter{before: map[rune]bool{metaspaceRune: true}}
	texts(func(text string) {
		last := rune(-1)
		for _, r := range text {
			if r == metaspaceRune && last >= 0 {
				p.before[last] = true
			}
			last = r
		}
	})
	const letters = "aeiou"
	for _, r := range letters {
		if p.before[r] {
			return nil
		}
	}
	return p
}

// next returns the end of the first part of text.
func (p *parter) next(text string) int {
	for at := 0; ; {
		i := strings.Index(text[at:], string(metaspaceRune))
		if i < 0 {
			return len(text)
		}
		at += i
		if last, n := utf8.DecodeLastRuneInString(text[:at]); n > 0 && !p.before[last] {
			return at
		}
		at += utf8.RuneLen(metaspaceRune)
	}
}
