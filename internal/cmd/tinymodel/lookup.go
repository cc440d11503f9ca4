package main

import "math/rand/v2"

// lookup is a chat of calls whose requests do not name the parameter, and whose tools all take values of the same type:
// which parameter is right stands in the tool's definition only. Among other calls such a request is rare, and most
// often the value alone tells the parameter; a model that learns from these does not learn to look it up.
func lookup(rng *rand.Rand) example {
	l := &trainingWords
	var e example
	e.maybeSystem(rng, 25, systemOfCalls...)
	kind := pick(rng, []func(*lexicon, *rand.Rand) value{
		someNumber, someNumber, (*lexicon).word, (*lexicon).word, someID, (*lexicon).city, (*lexicon).person,
	})
	var tools []tool
	for range between(rng, 2, 8) {
		t := tool{words: l.newName(rng, tools)}
		t.params = []param{{l.paramWords(rng), kind}}
		t.define(l, rng)
		tools, e.tools = append(tools, t), append(e.tools, t.def)
	}
	for i := range between(rng, 3, 10) {
		t := pick(rng, tools)
		e.addCall(i, l.callOf(rng, t, true), "ok", "Done.")
	}
	return e
}

// paramWords draws the name of a parameter.
func (l *lexicon) paramWords(rng *rand.Rand) []string {
	switch rng.IntN(4) {
	case 0:
		return l.newParam(rng).words
	case 1:
		return []string{l.noun(rng), pick(rng, []string{"id", "name", l.noun(rng)})}
	}
	return []string{l.noun(rng)}
}
