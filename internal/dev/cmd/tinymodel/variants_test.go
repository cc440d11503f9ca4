package main

import (
	"slices"
	"strings"
	"testing"
)

// TestVariants_SamePieces: a word has the same tokens wherever it stands, but for the first, which may have the
// space and the capital. So it is for words that the vocabulary has never seen, too.
func TestVariants_SamePieces(t *testing.T) {
	tok, _ := trained(t)
	pieces := func(text string) []string {
		var out []string
		for _, id := range tok.Encode(text, true) {
			out = append(out, tok.Decode([]int32{id}, false))
		}
		return out
	}
	words := slices.Concat(verbs, nouns, adjectives, heldOut.verbs, heldOut.nouns, heldOut.adjectives)
	split := 0
	for _, word := range words {
		want := pieces(word)
		if len(want) > 1 {
			split++
		}
		for _, variant := range []string{sentence(word), " " + word, " " + sentence(word)} {
			got := pieces(variant)
			if got[0] == " " { // a space of its own
				got = got[1:]
			}
			got[0] = strings.ToLower(strings.TrimPrefix(got[0], " "))
			if !slices.Equal(got, want) {
				t.Errorf("%q is %q, and %q is %q", word, want, variant, pieces(variant))
			}
		}
	}
	if split < len(words)/4 {
		t.Errorf("only %d of %d words have several tokens", split, len(words))
	}
}

func TestBare(t *testing.T) {
	for word, want := range map[string]string{
		" Cancel": "cancel", "user\n": "user", "a": "a", ` {"`: ` {"`, "\n": "\n", " ": " ", "7": "7", " _": " _",
	} {
		if got := bare(word); got != want {
			t.Errorf("%q is %q without its variants, want %q", word, got, want)
		}
	}
}
