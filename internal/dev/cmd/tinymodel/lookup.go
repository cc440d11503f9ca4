package main

import "math/rand/v2"

// lookup is a chat of calls whose requests do not name the parameter, and whose tools all take values of the same type:
// which parameter is right stands in the tool's definition only. Among other calls the value alone often tells it. Each
// tool is called once: when it is called again, its parameter can be copied from the call before.
func lookup(rng *rand.Rand) example {
	l := &trainingWords
	var e example
	e.maybeSystem(rng, 25, systemOfCalls...)
	kind := pick(rng, []func(*lexicon, *rand.Rand) value{
		someNumber, someNumber, (*lexicon).word, (*lexicon).word, someID, (*lexicon).city, (*lexicon).person,
	})
	var tools []tool
	for range between(rng, 3, 8) {
		t := tool{words: l.newName(rng, tools)}
		t.params = []param{{words: l.paramWords(rng), value: kind}}
		t.define(l, rng)
		tools, e.tools = append(tools, t), append(e.tools, t.def)
	}
	rng.Shuffle(len(tools), func(i, j int) { tools[i], tools[j] = tools[j], tools[i] })
	for i, t := range tools {
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
