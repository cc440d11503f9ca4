package main

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
)

// instructions are the short tasks other than arithmetic and yes or no.
var instructions = []func(*rand.Rand) example{
	guessNumber, higherLower, pickWord, placeOfWord, repeatWord, repeatWord, countUp,
}

func instruction(rng *rand.Rand) example { return pick(rng, instructions)(rng) }

// pickWord asks for any word of a list; each is as likely as the others.
func pickWord(rng *rand.Rand) example {
	var e example
	words := someWords(rng, between(rng, 2, 5))
	question := pick(rng, []string{
		"Pick one: {0}", "Pick a word: {0}.", "Choose one of {0}.", "Pick one word from this list: {0}", "{0}?",
	})
	e.maybeSystem(rng, 20, "Reply with one word.", "Answer with one word.")
	e.say(fill(question, joinWords(rng, words, "or")), pick(rng, words))
	return e
}

// placeOfWord asks for the first or the last word of a list.
func placeOfWord(rng *rand.Rand) example {
	var e example
	words := someWords(rng, between(rng, 2, 4))
	place, answer := "first", words[0]
	if chance(rng, 50) {
		place, answer = "last", words[len(words)-1]
	}
	question := pick(rng, []string{"Which word is {0}: {1}?", "The {0} word of: {1}", "Say the {0} word: {1}"})
	e.say(fill(question, place, strings.Join(words, pick(rng, []string{", ", " "}))), answer)
	return e
}

// repeatWord asks for a copy of a word, a few words or a number.
func repeatWord(rng *rand.Rand) example {
	var e example
	text, what := strings.Join(someWords(rng, between(rng, 1, 3)), " "), "text"
	if chance(rng, 30) {
		text, what = strconv.Itoa(between(rng, 0, 9999)), "number"
	} else if !strings.Contains(text, " ") {
		what = "word"
	}
	question := pick(rng, []string{
		"Repeat the {1}: {0}", "Repeat the {1} {0}.", "Repeat: {0}", "Say {0}.", "Say '{0}'.", `Repeat "{0}".`, "Echo {0}",
	})
	e.maybeSystem(rng, 15, "You are a helpful assistant.", "Repeat what the user says.")
	e.say(fill(question, text, what), text)
	return e
}

// countUp asks for the numbers of a short range, up or down.
func countUp(rng *rand.Rand) example {
	var e example
	hi := between(rng, 2, 12)
	lo := between(rng, 1, hi-1)
	switch rng.IntN(3) {
	case 0:
		e.say(fill(pick(rng, []string{"Count to {0}.", "Count up to {0}.", "Count to {0}"}), hi), numbers(1, hi))
	case 1:
		e.say(fill(pick(rng, []string{"Count from {0} to {1}.", "Count {0} to {1}."}), lo, hi), numbers(lo, hi))
	default:
		e.say(fill(pick(rng, []string{"Count down from {0}.", "Count from {0} down to 1."}), hi), numbers(hi, 1))
	}
	return e
}

// numbers writes the whole numbers from one end to the other, which may be lower.
func numbers(from, to int) string {
	var out []string
	for n := min(from, to); n <= max(from, to); n++ {
		out = append(out, strconv.Itoa(n))
	}
	if from > to {
		slices.Reverse(out)
	}
	return strings.Join(out, " ")
}

// copyText asks for a copy of a text of any kind.
func copyText(rng *rand.Rand) example {
	var e example
	for range between(rng, 1, 3) {
		var parts []string
		for range between(rng, 1, 8) {
			parts = append(parts, copied(rng))
		}
		text := strings.Join(parts, pick(rng, []string{" ", " ", ", ", "_"}))
		e.say(pick(rng, []string{"Repeat: ", "Say ", "Echo ", ""})+text, text)
	}
	return e
}

func copied(rng *rand.Rand) string {
	l := &trainingWords
	switch rng.IntN(4) {
	case 0:
		return l.newParam(rng).value(l, rng).String()
	case 1:
		return inventedWord(rng)
	}
	return l.noun(rng)
}
