package main

import (
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/goart-dev/art/examples/agents"
	"github.com/goart-dev/art/examples/agents/auto"
)

// grammar puts a sentence with a mistake, and the sentence without it, into tags.
var grammar = task{
	name:   "grammar",
	text:   "Correct the grammar of a sentence. Give the original and the corrected sentence in tags.",
	system: "Give the original and the corrected sentence in tags.",
	examples: []auto.Example{
		{Input: "He go home.", Reply: "<original>He go home.</original><corrected>He goes home.</corrected>"},
		{Input: "I has a house.", Reply: "<original>I has a house.</original><corrected>I have a house.</corrected>"},
		{Input: "We was late.", Reply: "<original>We was late.</original><corrected>We were late.</corrected>"},
	},
	rubric: "- The whole reply is <original>...</original><corrected>...</corrected>.\n- The original is copied to the " +
		"letter.\n- The corrected sentence has no mistake, and is otherwise the same.",
	tokens: 48,
	draw:   drawSentence,
	rules: []rule{
		{"by the rule (tags, original copied, something corrected)", tagsAreRight},
		{"by the rule, and the sentence is corrected", sentenceIsRight},
	},
	grade: gradeTags,
}

type mistake struct{ wrong, right string }

// What sentences are made of.
var (
	subjects = []string{
		"She", "He", "Maria", "Tom", "My brother", "The teacher", "Our neighbour", "The doctor", "My aunt", "Peter",
		"The old man", "Her friend", "The student", "Anna", "His boss", "The child",
	}
	mistakes = []mistake{
		{"walk to the market", "walks to the market"}, {"drink cold coffee", "drinks cold coffee"},
		{"have a red car", "has a red car"}, {"do the shopping", "does the shopping"},
		{"read the newspaper", "reads the newspaper"}, {"play chess", "plays chess"},
		{"live near the river", "lives near the river"}, {"speak French", "speaks French"},
		{"work in a bank", "works in a bank"}, {"sing old songs", "sings old songs"},
		{"don't like soup", "doesn't like soup"}, {"don't drive fast", "doesn't drive fast"},
		{"eats a apple", "eats an apple"}, {"carries a umbrella", "carries an umbrella"},
		{"writes a email", "writes an email"}, {"buys two book", "buys two books"},
		{"feeds three dog", "feeds three dogs"}, {"cooks many egg", "cooks many eggs"},
		{"are very tired", "is very tired"}, {"are at home", "is at home"},
		{"is sleep on the sofa", "is sleeping on the sofa"}, {"is cook dinner", "is cooking dinner"},
		{"can swims well", "can swim well"}, {"must goes to school", "must go to school"},
	}
	endings = []string{
		"every morning", "on Sundays", "after work", "in winter", "at night", "these days", "before lunch", "in summer",
		"with pleasure", "on most days", "during the week", "when it rains",
	}
)

func drawSentence(rng *rand.Rand) string {
	return fmt.Sprintf("%s %s %s.", pick(rng, subjects), pick(rng, mistakes).wrong, pick(rng, endings))
}

func correctedOf(input string) string {
	for _, m := range mistakes {
		if strings.Contains(input, " "+m.wrong+" ") {
			return strings.Replace(input, " "+m.wrong+" ", " "+m.right+" ", 1)
		}
	}
	return input
}

// tagsOf reads a reply that is nothing but both tags.
func tagsOf(reply string) (original, corrected string, ok bool) {
	rest, begins := strings.CutPrefix(strings.TrimSpace(reply), "<original>")
	rest, ends := strings.CutSuffix(rest, "</corrected>")
	original, corrected, ok = strings.Cut(rest, "</original><corrected>")
	return original, corrected, ok && begins && ends && !strings.ContainsAny(original+corrected, "<>")
}

// tagsAreRight tells whether a reply is nothing but both tags, with the input copied to the letter in the first and
// something in the second.
func tagsAreRight(input, reply string) bool {
	original, corrected, ok := tagsOf(reply)
	return ok && original == input && strings.TrimSpace(corrected) != ""
}

// sentenceIsRight asks for the right sentence in the second tag as well.
func sentenceIsRight(input, reply string) bool {
	_, corrected, _ := tagsOf(reply)
	return tagsAreRight(input, reply) && corrected == correctedOf(input)
}

func gradeTags(input, reply string) (float64, string) {
	reply = strings.TrimSpace(reply)
	original, hasOriginal := between(reply, "<original>", "</original>")
	corrected, hasCorrected := between(reply, "<corrected>", "</corrected>")
	_, _, alone := tagsOf(reply)
	return total(
		part{"<original> at its beginning", 0.1, when(strings.HasPrefix(reply, "<original>"))},
		part{"the tags of the original", 0.1, when(hasOriginal)},
		part{"the tags of the corrected sentence", 0.1, when(hasCorrected)},
		part{"a copy of the original", 0.25, alike(original, input)},
		part{"the corrected sentence", 0.25, alike(corrected, correctedOf(input))},
		part{"an end after both tags", 0.2, when(alone)},
	)
}

// alike is 1 for equal texts, and at most 0.6 for others, by the words that they share.
func alike(got, want string) float64 {
	if got == want {
		return 1
	}
	return 0.6 * agents.Similarity(got, want)
}

func between(text, begin, end string) (inside string, ok bool) {
	if _, text, ok = strings.Cut(text, begin); !ok {
		return "", false
	}
	inside, _, ok = strings.Cut(text, end)
	return inside, ok
}
