package main

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/goart-dev/art"
)

// call is a request and what has to be called.
type call struct {
	request string
	call    art.ToolCall
}

// argument is a value of a parameter.
type argument struct {
	param
	value value
}

// newCall draws a request for a tool. One with a single argument does not name its parameter in half of the cases.
func (l *lexicon) newCall(rng *rand.Rand, t tool) call {
	return l.callOf(rng, t, chance(rng, 50))
}

// callOf draws a request. When it has a single argument, and bare is set, the request does not name its parameter.
func (l *lexicon) callOf(rng *rand.Rand, t tool, bare bool) call {
	var given []argument
	var literals []string
	for _, p := range t.params {
		if p.optional && chance(rng, 50) {
			continue
		}
		a := argument{p, p.value(l, rng)}
		given = append(given, a)
		literals = append(literals, strconv.Quote(t.join(p.words))+": "+a.value.json())
	}
	return call{
		request: t.request(rng, given, bare),
		call:    art.ToolCall{Name: t.name(), Arguments: "{" + strings.Join(literals, ", ") + "}"},
	}
}

// request is what a user says: the words of the tool's name in their order, then the arguments in theirs.
func (t tool) request(rng *rand.Rand, given []argument, bare bool) string {
	text := t.phrase(rng)
	nameless := !slices.ContainsFunc(given, func(a argument) bool { return a.value.kind == boolean })
	switch {
	case len(given) == 1 && bare && nameless:
		text += pick(rng, []string{" ", " ", " for ", " of ", " to ", " in ", " with ", ": "}) + given[0].value.String()
	case len(given) > 1 && chance(rng, 20) && nameless:
		text += pick(rng, []string{" ", " ", " for ", " with ", ": "}) + list(rng, given)
	default:
		for i, a := range given {
			text += pick(rng, links(i)) + a.named(rng)
		}
	}
	return sentence(text) + pick(rng, []string{"", ".", ".", ".", "?"})
}

// list is values without the names of their parameters: 3, 4 and 5.
func list(rng *rand.Rand, given []argument) string {
	var values []string
	for _, a := range given {
		values = append(values, a.value.String())
	}
	last := len(values) - 1
	return strings.Join(values[:last], ", ") + pick(rng, []string{" and ", " and ", ", ", " to "}) + values[last]
}

// named is a value with the name of its parameter: sides 6, sides = 6, or 6 sides.
func (a argument) named(rng *rand.Rand) string {
	name, v := strings.Join(a.words, " "), a.value.String()
	if a.value.kind == integer && chance(rng, 30) {
		return v + " " + name
	}
	return name + pick(rng, []string{" ", " ", " ", " = ", ": "}) + v
}

// links are what stands before an argument.
func links(i int) []string {
	if i == 0 {
		return []string{" with ", " with ", " for ", " by ", ", ", ": "}
	}
	return []string{" and ", " and ", ", ", ", and "}
}

// phrase says what a tool does by the words of its name.
func (t tool) phrase(rng *rand.Rand) string {
	if chance(rng, 12) {
		return pick(rng, []string{"use ", "call ", "run ", "please use "}) + t.name()
	}
	words := slices.Clone(t.words)
	if len(words) > 1 && chance(rng, 35) {
		words = slices.Insert(words, 1, pick(rng, []string{"the", "the", "a", "my", "this"}))
	}
	lead := ""
	if chance(rng, 40) {
		lead = pick(rng, []string{"please ", "please ", "can you ", "now ", "I want to ", "could you ", "next, "})
	}
	return lead + strings.Join(words, " ")
}

// sentence begins with a capital.
func sentence(s string) string {
	r := []rune(s)
	r[0] = unicode.ToUpper(r[0])
	return string(r)
}
