package main

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
)

// fill replaces {0}, {1}, ... in a text by the values.
func fill(text string, values ...any) string {
	for i, v := range values {
		text = strings.ReplaceAll(text, "{"+strconv.Itoa(i)+"}", fmt.Sprint(v))
	}
	return text
}

// wordList holds the words of lists and texts.
var wordList = strings.Fields(`
	red blue green white black yellow apple pear lemon bread milk rice cat dog bird fish horse bear house door
	table book pen car train ship road city river tree stone sun moon star rain snow fire day night winter north south
	left right up down hand head king queen friend song music game ball box key ring one two three big small old new hot
	cold good`)

// someWord is a word of the list, or now and then an invented one, so that copying goes by letters too.
func someWord(rng *rand.Rand) string {
	if chance(rng, 20) {
		return inventedWord(rng)
	}
	return pick(rng, wordList)
}

// inventedWord has two or three open syllables. Its consonants are few: with more, offensive words come out.
func inventedWord(rng *rand.Rand) string {
	word := ""
	for range between(rng, 2, 3) {
		word += string("bdlmrtv"[rng.IntN(7)]) + string("aeiou"[rng.IntN(5)])
	}
	return word
}

// someWords returns n different words.
func someWords(rng *rand.Rand, n int) []string {
	var out []string
	for len(out) < n {
		if w := someWord(rng); !slices.Contains(out, w) {
			out = append(out, w)
		}
	}
	return out
}

// joinWords writes a list in one of the usual ways; last is the word before the last item.
func joinWords(rng *rand.Rand, words []string, last string) string {
	switch rng.IntN(4) {
	case 0:
		return strings.Join(words, ", ")
	case 1:
		return strings.Join(words, "/")
	case 2:
		return strings.Join(words, " "+last+" ")
	}
	end := len(words) - 1
	return strings.Join(words[:end], ", ") + " " + last + " " + words[end]
}
