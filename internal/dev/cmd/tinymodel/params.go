package main

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
)

// param is a parameter of a tool.
type param struct {
	words    []string // of its name
	value    func(*lexicon, *rand.Rand) value
	about    string   // its description; "" for none
	choices  []string // the only values, if any
	optional bool
}

// value is an argument.
type value struct {
	text   string // as a user writes it
	quoted bool   // whether a user puts it between quotation marks
	kind   string // its type in JSON Schema; "" is a string
}

const (
	integer = "integer"
	decimal = "number"
	boolean = "boolean"
)

func (v value) json() string {
	if v.kind != "" {
		return v.text
	}
	return strconv.Quote(v.text)
}

func (v value) String() string {
	if v.quoted {
		return strconv.Quote(v.text)
	}
	return v.text
}

// newParam draws a parameter. Some have a description, and some say which values there are.
func (l *lexicon) newParam(rng *rand.Rand) param {
	words, kind := l.paramKind(rng)
	p := param{words: words, value: kind}
	if chance(rng, 6) {
		for range between(rng, 2, 4) {
			p.choices = append(p.choices, l.orInvented(rng, l.adjectives))
		}
		p.value = func(_ *lexicon, rng *rand.Rand) value { return value{text: pick(rng, p.choices)} }
	}
	if chance(rng, 30) {
		p.about = l.describe(rng, strings.Join(words, " "))
	}
	return p
}

// describe writes the description of a parameter.
func (l *lexicon) describe(rng *rand.Rand, name string) string {
	return sentence(fill(pick(rng, []string{
		"the {0}.", "the {0}", "{0} of the {1}.", "which {0} to use.", "the {0} to {2}.", "{0}", "the {1}.",
	}), name, l.noun(rng), l.verb(rng)))
}

// paramKind draws a name and what its values are.
func (l *lexicon) paramKind(rng *rand.Rand) ([]string, func(*lexicon, *rand.Rand) value) {
	switch rng.IntN(14) {
	case 0:
		return []string{"id"}, idKind(rng)
	case 1:
		return []string{l.noun(rng), "id"}, idKind(rng)
	case 2:
		return []string{pick(rng, []string{"city", "place", "location", "from", "to"})}, (*lexicon).city
	case 3:
		return []string{pick(rng, []string{"name", "person", "user", "owner", "to", "from"})}, (*lexicon).person
	case 4:
		return []string{pick(rng, []string{"query", "text", "title", "message", "note", "reason"})}, (*lexicon).phrase
	case 5:
		return []string{pick(rng, []string{"number", "limit", "count", "amount", "n", "year", "price"})}, someNumber
	case 6:
		return []string{"max", l.noun(rng)}, someNumber
	case 7:
		return []string{pick(rng, []string{"date", "day", "after", "before", "start", "end"})}, someDate
	case 8:
		return []string{pick(rng, []string{"email", "to", "from", "address"})}, (*lexicon).email
	case 9:
		return []string{pick(rng, []string{"path", "file"})}, (*lexicon).file
	case 10:
		return []string{l.noun(rng) + pick(rng, []string{"", "s"})}, someNumber
	case 11:
		return []string{pick(rng, []string{"a", "b", "c", "x", "y", "z"})}, someNumber
	case 12:
		kinds := []func(*lexicon, *rand.Rand) value{someBoolean, someDecimal}
		return []string{l.orInvented(rng, l.adjectives)}, pick(rng, kinds)
	}
	return []string{l.noun(rng)}, (*lexicon).word
}

func someNumber(_ *lexicon, rng *rand.Rand) value {
	return value{text: strconv.Itoa(rng.IntN(pick(rng, []int{10, 100, 1000, 10000}))), kind: integer}
}

func someDecimal(_ *lexicon, rng *rand.Rand) value {
	return value{text: fmt.Sprintf("%d.%d", rng.IntN(pick(rng, []int{10, 100})), between(rng, 1, 9)), kind: decimal}
}

func someBoolean(_ *lexicon, rng *rand.Rand) value {
	return value{text: strconv.FormatBool(chance(rng, 50)), kind: boolean}
}

// idKind draws what the ids of a parameter are: numbers, digits in a string, or digits behind letters.
func idKind(rng *rand.Rand) func(*lexicon, *rand.Rand) value {
	switch n := rng.IntN(100); {
	case n < 25:
		return func(_ *lexicon, rng *rand.Rand) value { return value{text: someDigits(rng), kind: integer} }
	case n < 35:
		return func(_ *lexicon, rng *rand.Rand) value { return value{text: someDigits(rng)} }
	}
	return someID
}

func someDigits(rng *rand.Rand) string { return strconv.Itoa(between(rng, 10, 9999)) }

// someID is a letter or the beginning of a word, and digits: m412, A17, or-552.
func someID(_ *lexicon, rng *rand.Rand) value {
	switch rng.IntN(3) {
	case 0:
		return value{text: string(rune('a'+rng.IntN(26))) + someDigits(rng)}
	case 1:
		return value{text: string(rune('A'+rng.IntN(26))) + someDigits(rng)}
	}
	return value{text: inventedWord(rng)[:between(rng, 2, 4)] + pick(rng, []string{"-", "_"}) + someDigits(rng)}
}

func someDate(_ *lexicon, rng *rand.Rand) value {
	return value{text: fmt.Sprintf("20%02d-%02d-%02d", between(rng, 10, 39), between(rng, 1, 12), between(rng, 1, 28))}
}

func (l *lexicon) city(rng *rand.Rand) value { return value{text: l.orInventedName(rng, l.cities)} }

func (l *lexicon) person(rng *rand.Rand) value {
	first := l.orInventedName(rng, l.people)
	if chance(rng, 50) {
		return value{text: first}
	}
	return value{text: first + " " + l.orInventedName(rng, l.people)}
}

func (l *lexicon) word(rng *rand.Rand) value {
	return value{text: l.noun(rng), quoted: chance(rng, 20)}
}

// phrase has one to four words.
func (l *lexicon) phrase(rng *rand.Rand) value {
	n := between(rng, 1, 4)
	words := make([]string, n)
	for i := range words {
		words[i] = l.orInvented(rng, pick(rng, [][]string{l.nouns, l.nouns, l.adjectives, l.verbs}))
	}
	return value{text: strings.Join(words, " "), quoted: true}
}

func (l *lexicon) email(rng *rand.Rand) value {
	name := strings.ToLower(pick(rng, l.people))
	return value{text: name + "@" + l.noun(rng) + pick(rng, []string{".com", ".org", ".net"})}
}

func (l *lexicon) file(rng *rand.Rand) value {
	return value{text: l.noun(rng) + pick(rng, []string{".txt", ".md", ".go", ".csv"})}
}
