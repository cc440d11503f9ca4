package main

import (
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/goart-dev/art/tokenizer"
)

// Copying has to work for words that training has never seen, so a part of the words is new each time they are drawn:
// blends of two words, syllables, and pieces of the vocabulary joined at random. The last are why any token can begin a
// word; a token that training never writes is not copied.

// useVocabulary lets words be joined of all tokens that are small letters.
func (l *lexicon) useVocabulary(tok *tokenizer.Tokenizer) {
	l.pieces = nil
	for id := range tok.VocabSize() {
		piece := tok.Decode([]int32{int32(id)}, false)
		if piece != "" && !strings.ContainsFunc(piece, func(r rune) bool { return r < 'a' || r > 'z' }) {
			l.pieces = append(l.pieces, piece)
		}
	}
}

// orInvented returns one of the words or, in 40 % of the cases, a new one.
func (l *lexicon) orInvented(rng *rand.Rand, words []string) string {
	switch n := rng.IntN(100); {
	case n < 10:
		return inventedWord(rng)
	case n < 20:
		return blend(rng, words)
	case n < 40 && l.pieces != nil:
		return l.joined(rng)
	}
	return pick(rng, words)
}

// orInventedName returns one of the names or, in 40 % of the cases, a new one.
func (l *lexicon) orInventedName(rng *rand.Rand, names []string) string {
	switch n := rng.IntN(100); {
	case n < 20:
		return blend(rng, names)
	case n < 40 && l.pieces != nil:
		return sentence(l.joined(rng))
	}
	return pick(rng, names)
}

// joined makes a word of one to three pieces.
func (l *lexicon) joined(rng *rand.Rand) string {
	for {
		word := ""
		for range between(rng, 1, 3) {
			word += pick(rng, l.pieces)
		}
		if len(word) > 1 && len(word) < 12 && !isHeldOut(word) {
			return word
		}
	}
}

// blend joins the beginning of a word and the end of another: "custument".
func blend(rng *rand.Rand, words []string) string {
	for {
		a, b := pick(rng, words), pick(rng, words)
		if word := a[:(len(a)+1)/2] + b[len(b)/2:]; !isHeldOut(word) {
			return word
		}
	}
}

// isHeldOut reports whether a word is one that training must not see. Syllables make none of them.
func isHeldOut(word string) bool {
	for _, list := range [][]string{heldOut.verbs, heldOut.nouns, heldOut.adjectives, heldOut.people, heldOut.cities} {
		if slices.ContainsFunc(list, func(w string) bool { return strings.EqualFold(w, word) }) {
			return true
		}
	}
	return false
}
