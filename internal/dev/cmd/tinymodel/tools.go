package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"github.com/goart-dev/art"
)

// tool is a tool of one chat.
type tool struct {
	words  []string // of its name
	camel  bool     // getWeather in place of get_weather
	params []param
	def    art.Tool
}

// join writes the words of a name.
func (t tool) join(words []string) string {
	if !t.camel {
		return strings.Join(words, "_")
	}
	name := words[0]
	for _, w := range words[1:] {
		name += sentence(w)
	}
	return name
}

// newTool draws a tool; taken are the names of others. One in three shares its verb or its noun with one of others.
func (l *lexicon) newTool(rng *rand.Rand, others []tool) tool {
	t := tool{words: l.newName(rng, others), camel: chance(rng, 8)}
	for n := l.numParams(rng); len(t.params) < n; {
		p := l.newParam(rng)
		if !slices.ContainsFunc(t.params, func(o param) bool { return slices.Equal(o.words, p.words) }) {
			t.params = append(t.params, p)
		}
	}
	if last := len(t.params) - 1; last > 0 && chance(rng, 20) {
		t.params[last].optional = true
	}
	t.define(l, rng)
	return t
}

// newName draws the words of a name that none of the others has.
func (l *lexicon) newName(rng *rand.Rand, others []tool) []string {
	for {
		words := l.toolWords(rng, others)
		if !slices.ContainsFunc(others, func(o tool) bool { return slices.Equal(o.words, words) }) {
			return words
		}
	}
}

func (t tool) name() string { return t.join(t.words) }

func (l *lexicon) numParams(rng *rand.Rand) int {
	switch n := rng.IntN(100); {
	case n < 15:
		return 0
	case n < 65:
		return 1
	case n < 92:
		return 2
	}
	return 3
}

// toolWords draws a name: a verb and a noun, sometimes with an adjective, a verb alone, or a word that means nothing.
func (l *lexicon) toolWords(rng *rand.Rand, others []tool) []string {
	verb, noun := l.verb(rng), l.noun(rng)
	if len(others) > 0 && chance(rng, 33) {
		o := pick(rng, others).words
		if chance(rng, 50) {
			verb = o[0]
		} else {
			noun = o[len(o)-1]
		}
	}
	switch n := rng.IntN(100); {
	case n < 8:
		return []string{verb}
	case n < 70:
		return []string{verb, noun}
	case n < 85:
		return []string{verb, pick(rng, l.adjectives), noun}
	case n < 95:
		return []string{verb, l.noun(rng), noun}
	}
	return []string{noun, verb}
}

func (l *lexicon) verb(rng *rand.Rand) string { return l.orInvented(rng, l.verbs) }
func (l *lexicon) noun(rng *rand.Rand) string { return l.orInvented(rng, l.nouns) }

// define writes the definition of a tool. The required parameters are listed in most, and wherever one is optional.
func (t *tool) define(l *lexicon, rng *rand.Rand) {
	var properties, required []string
	all := true
	for _, p := range t.params {
		name := strconv.Quote(t.join(p.words))
		properties = append(properties, name+": "+p.schema(l, rng))
		if p.optional {
			all = false
		} else {
			required = append(required, name)
		}
	}
	schema := `{"type": "object", "properties": {` + strings.Join(properties, ", ") + "}"
	if len(required) > 0 && (!all || chance(rng, 70)) {
		schema += `, "required": [` + strings.Join(required, ", ") + "]"
	}
	t.def = art.Tool{Name: t.name(), Parameters: json.RawMessage(schema + "}")}
	if chance(rng, 70) {
		rest := pick(rng, []string{"", "", "", " of the {0}", " for a {0}", " by {0}", " and its {0}"})
		t.def.Description = sentence(strings.Join(t.words, " ")) + fill(rest, l.noun(rng)) + "."
	}
}

// schema is what a definition says of a parameter.
func (p param) schema(l *lexicon, rng *rand.Rand) string {
	text := `{"type": ` + strconv.Quote(cmp.Or(p.value(l, rng).kind, "string"))
	if p.about != "" {
		text += `, "description": ` + strconv.Quote(p.about)
	}
	if p.choices != nil {
		quoted := make([]string, len(p.choices))
		for i, c := range p.choices {
			quoted[i] = strconv.Quote(c)
		}
		text += `, "enum": [` + strings.Join(quoted, ", ") + "]"
	}
	return text + "}"
}

// result draws what a tool returns, and what the assistant says of it.
func (l *lexicon) result(rng *rand.Rand) (result, answer string) {
	switch rng.IntN(4) {
	case 0:
		return pick(rng, []string{"ok", "done", "true"}), "Done."
	case 1:
		v := l.phrase(rng)
		return v.text, v.text
	case 2:
		v := someNumber(l, rng)
		return v.text, "It is " + v.text + "."
	}
	key, v := l.noun(rng), pick(rng, []func(*lexicon, *rand.Rand) value{someID, (*lexicon).word, someNumber})(l, rng)
	return fmt.Sprintf(`{"%s": %s}`, key, v.json()), fmt.Sprintf("The %s is %s.", key, v.text)
}

// callChat offers some tools, and the user asks for several calls, one after another.
func callChat(rng *rand.Rand) example {
	return trainingWords.chat(rng, between(rng, 1, 6), between(rng, 2, 8))
}

// calls are chats in which every answer is a call or follows from one.
func calls(rng *rand.Rand) example {
	switch n := rng.IntN(100); {
	case n < 25:
		return trainingWords.chain(rng)
	case n < 40:
		return lookup(rng)
	}
	return callChat(rng)
}

// directAnswer is a chat in which tools are offered and nobody needs them.
func directAnswer(rng *rand.Rand) example {
	e := pick(rng, []func(*rand.Rand) example{talk, yesNo, repeatWord})(rng)
	trainingWords.offer(&e, rng, between(rng, 1, 3))
	return e
}

// toolChat is any chat with tools.
func toolChat(rng *rand.Rand) example {
	switch n := rng.IntN(100); {
	case n < 40:
		return callChat(rng)
	case n < 45: // a long one
		return trainingWords.chat(rng, between(rng, 8, 16), between(rng, 4, 12))
	case n < 65:
		return lookup(rng)
	case n < 85:
		return trainingWords.chain(rng)
	}
	return directAnswer(rng)
}

func (l *lexicon) chat(rng *rand.Rand, numTools, numCalls int) example {
	var e example
	e.maybeSystem(rng, 25, systemOfCalls...)
	tools := l.offer(&e, rng, numTools)
	for i := range numCalls {
		c := l.newCall(rng, pick(rng, tools))
		result, answer := l.result(rng)
		e.addCall(i, c, result, answer)
	}
	return e
}

var systemOfCalls = []string{"You are a helpful assistant.", "Use the tools."}

// addCall appends a request, its call, what that returns and what the assistant says of it.
func (e *example) addCall(i int, c call, result, answer string) {
	c.call.ID = fmt.Sprintf("call_%d", i+1)
	e.add(art.User(c.request), art.Message{Role: art.RoleAssistant, ToolCalls: []art.ToolCall{c.call}},
		art.ToolResult(c.call.ID, result), art.Assistant(answer))
}

// offer puts n tools into a chat.
func (l *lexicon) offer(e *example, rng *rand.Rand, n int) []tool {
	var tools []tool
	for range n {
		tools = append(tools, l.newTool(rng, tools))
		e.tools = append(e.tools, tools[len(tools)-1].def)
	}
	return tools
}

// toolText is a tool as chat templates write it.
func toolText(t art.Tool) string {
	text := `{"type": "function", "function": {"name": ` + strconv.Quote(t.Name)
	if t.Description != "" {
		text += `, "description": ` + strconv.Quote(t.Description)
	}
	return text + `, "parameters": ` + string(t.Parameters) + "}}"
}

// callText is a tool call as chat templates write it.
func callText(c art.ToolCall) string {
	return `{"name": ` + strconv.Quote(c.Name) + `, "arguments": ` + c.Arguments + "}"
}

// toolPreamble is about what chat templates write around a list of tools. Only the vocabulary is made with it.
const toolPreamble = "# Tools\n\nThese functions can be called. Each line describes one of them in JSON:\n" +
	"<tools>\n</tools>\n\n" +
	"To call a function, write its name and its arguments as one JSON object between tags, once for each call:\n" +
	`{"name": "function", "arguments": {"parameter": "value"}}`
