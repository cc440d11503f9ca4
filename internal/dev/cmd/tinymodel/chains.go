package main

import (
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/goart-dev/art"
)

// chain is a task of several calls: what the first returns lists things with ids, the next call needs one of the ids,
// and the answer comes from what that returns. Which thing is chosen is chance: to choose well is a skill.
func (l *lexicon) chain(rng *rand.Rand) example {
	var e example
	find := tool{words: []string{pick(rng, []string{"search", "find", "list", "query"})}}
	open := tool{words: []string{pick(rng, []string{"read", "open", "get", "show"})}}
	if chance(rng, 60) {
		noun := l.noun(rng)
		find.words, open.words = append(find.words, noun), append(open.words, noun)
	}
	query := param{words: []string{pick(rng, []string{"query", "text", "words", l.noun(rng)})}, value: (*lexicon).words}
	key := pick(rng, []string{"id", "id", "id", "key", "number"})
	id := param{words: []string{key}, value: func(_ *lexicon, rng *rand.Rand) value { return value{text: listedID(rng)} }}
	find.params, open.params = []param{query}, []param{id}
	find.define(l, rng)
	open.define(l, rng)
	e.tools = []art.Tool{find.def, open.def}
	others := []tool{find, open}
	for range rng.IntN(3) {
		others = append(others, l.newTool(rng, others))
		e.tools = append(e.tools, others[len(others)-1].def)
	}
	rng.Shuffle(len(e.tools), func(i, j int) { e.tools[i], e.tools[j] = e.tools[j], e.tools[i] })
	if chance(rng, 70) {
		e.add(art.System(fmt.Sprintf("Call %s with the %s. Then call %s with that %s.",
			find.name(), query.words[0], open.name(), key)))
	}
	what := l.words(rng).text
	request := pick(rng, []string{"Search for {0}.", "Find {0}.", "{0}", "What about {0}?", "Look for {0}."})
	e.add(art.User(fill(request, what)))
	e.call("call_1", find.name(), fmt.Sprintf(`{"%s": "%s"}`, query.words[0], what))
	var lines, ids []string
	field := l.noun(rng)
	for range between(rng, 1, 4) {
		ids = append(ids, listedID(rng))
		lines = append(lines, fmt.Sprintf(`{"%s": "%s", "%s": "%s"}`, key, ids[len(ids)-1], field, l.words(rng).text))
	}
	e.add(art.ToolResult("call_1", strings.Join(lines, "\n")))
	e.call("call_2", open.name(), fmt.Sprintf(`{"%s": "%s"}`, key, pick(rng, ids)))
	text := l.words(rng).text
	e.add(art.ToolResult("call_2", fmt.Sprintf(`{"text": "%s"}`, text)), art.Assistant(text))
	return e
}

// call appends a call of the assistant.
func (e *example) call(id, name, arguments string) {
	e.add(art.Message{Role: art.RoleAssistant, ToolCalls: []art.ToolCall{{ID: id, Name: name, Arguments: arguments}}})
}

// words are one to four words without quotation marks.
func (l *lexicon) words(rng *rand.Rand) value { return value{text: l.phrase(rng).text} }

// listedID is an id of three to six digits, sometimes with a letter before.
func listedID(rng *rand.Rand) string {
	id := fmt.Sprint(between(rng, 100, pick(rng, []int{999, 9999, 999999})))
	if chance(rng, 40) {
		id = string(rune('a'+rng.IntN(26))) + id
	}
	return id
}
