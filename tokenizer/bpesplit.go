package tokenizer

import (
	"iter"
	"strings"
	"unicode/utf8"
)

// wordSplitter cuts a text before the spaces that no merge crosses. Vocabularies of SentencePiece have no
// pre-tokenizer, so a whole text is one word, but few of their tokens have a space after another character. The parts
// are encoded independently, so they can be cached.
type wordSplitter struct {
	before map[rune]bool // the characters that some token has before a space
}

// metaspaceRune is how SentencePiece writes a space.
const metaspaceRune = '▁'

// newWordSplitter takes the tokens that merges produce. It returns nil if it would hardly ever cut.
func newWordSplitter(texts iter.Seq[string]) *wordSplitter {
	p := &wordSplitter{before: map[rune]bool{metaspaceRune: true}}
	for text := range texts {
		last := rune(-1)
		for _, r := range text {
			if r == metaspaceRune && last >= 0 {
				p.before[last] = true
			}
			last = r
		}
	}
	for _, r := range "aeiou" {
		if p.before[r] {
			return nil
		}
	}
	return p
}

// next returns the end of the first part of text.
func (p *wordSplitter) next(text string) int {
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
