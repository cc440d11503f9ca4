package main

import (
	"math/rand/v2"
	"slices"
	"strings"
)

// yesNo offers some of yes, no and maybe in some order and style. Each of the words offered is as likely as the
// others.
func yesNo(rng *rand.Rand) example {
	var e example
	offered := offer(rng)
	e.maybeSystem(rng, 20, "Answer with one word.", "You are a helpful assistant.")
	e.say(offerText(rng, offered), pick(rng, offered))
	return e
}

// offer returns two or three of the words.
func offer(rng *rand.Rand) []string {
	words := []string{"yes", "no", "maybe"}
	rng.Shuffle(len(words), func(i, j int) { words[i], words[j] = words[j], words[i] })
	return words[:between(rng, 2, 3)]
}

// offerText writes an offer such as: just respond with "no", "yes" or "maybe".
func offerText(rng *rand.Rand, offered []string) string {
	mark := pick(rng, []string{"", "", "'", `"`})
	words := slices.Clone(offered)
	for i, w := range words {
		words[i] = mark + w + mark
	}
	prefix := pick(rng, []string{
		"", "", "answer with ", "reply with ", "respond with ", "just respond with ", "say ", "just say ",
		"answer ", "choose ", "only ",
	})
	text := prefix + joinWords(rng, words, "or") + pick(rng, []string{"", "", ".", "?"})
	if chance(rng, 40) {
		text = capitalized(text)
	}
	if chance(rng, 20) {
		text = "Is the " + pick(rng, wordList) + " " + pick(rng, wordList) + "? " + capitalized(text)
	}
	return text
}

// capitalized writes the first letter as a capital; texts that begin with a quotation mark stay as they are.
func capitalized(text string) string { return strings.ToUpper(text[:1]) + text[1:] }
