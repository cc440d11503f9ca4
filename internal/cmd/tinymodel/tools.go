package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/goart-dev/art"
)

// tool is a tool of one chat.
type tool struct {
	words  []string // of its name
	params []param
	def    art.Tool
}

// param is a parameter of a tool.
type param struct {
	words []string // of its name
	value func(*lexicon, *rand.Rand) value
}

func (p param) name() string { return strings.Join(p.words, "_") }

// value is an argument.
type value struct {
	text   string // as a user writes it
	quoted bool   // whether a user puts it between quotation marks
	number bool
}

func (v value) json() string {
	if v.number {
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

// newTool draws a tool; taken are the names of others. One in three shares its verb or its noun with one of others.
func (l *lexicon) newTool(rng *rand.Rand, others []tool) tool {
	t := tool{words: l.newName(rng, others)}
	for n := l.numParams(rng); len(t.params) < n; {
		p := l.newParam(rng)
		if !slices.ContainsFunc(t.params, func(o param) bool { return o.name() == p.name() }) {
			t.params = append(t.params, p)
		}
	}
	t.define(l, rng)
	return t
}

// newName draws the words of a name that none of the others has.
func (l *lexicon) newName(rng *rand.Rand, others []tool) []string {
	for {
		t := tool{words: l.toolWords(rng, others)}
		if !slices.ContainsFunc(others, func(o tool) bool { return o.name() == t.name() }) {
			return t.words
		}
	}
}

func (t tool) name() string { return strings.Join(t.words, "_") }

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

func (l *lexicon) newParam(rng *rand.Rand) param {
	switch rng.IntN(12) {
	case 0:
		return param{[]string{"id"}, idKind(rng)}
	case 1:
		return param{[]string{l.noun(rng), "id"}, idKind(rng)}
	case 2:
		return param{[]string{pick(rng, []string{"city", "place", "location", "from", "to"})}, (*lexicon).city}
	case 3:
		return param{[]string{pick(rng, []string{"name", "person", "user", "owner", "to", "from"})}, (*lexicon).person}
	case 4:
		return param{[]string{pick(rng, []string{"query", "text", "title", "message", "note", "reason"})}, (*lexicon).phrase}
	case 5:
		words := []string{"number", "limit", "count", "amount", "n", "x", "year", "price"}
		return param{[]string{pick(rng, words)}, someNumber}
	case 6:
		return param{[]string{"max", l.noun(rng)}, someNumber}
	case 7:
		return param{[]string{pick(rng, []string{"date", "day", "after", "before", "start", "end"})}, someDate}
	case 8:
		return param{[]string{pick(rng, []string{"email", "to", "from", "address"})}, (*lexicon).email}
	case 9:
		return param{[]string{pick(rng, []string{"path", "file"})}, (*lexicon).file}
	case 10:
		return param{[]string{l.noun(rng)}, someNumber}
	}
	return param{[]string{l.noun(rng)}, (*lexicon).word}
}

func someNumber(_ *lexicon, rng *rand.Rand) value {
	return value{text: strconv.Itoa(rng.IntN(pick(rng, []int{10, 100, 1000, 10000}))), number: true}
}

// idKind draws what the ids of a parameter are: numbers, digits in a string, or digits behind letters.
func idKind(rng *rand.Rand) func(*lexicon, *rand.Rand) value {
	switch n := rng.IntN(100); {
	case n < 25:
		return func(_ *lexicon, rng *rand.Rand) value { return value{text: someDigits(rng), number: true} }
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

// define writes the definition of a tool.
func (t *tool) define(l *lexicon, rng *rand.Rand) {
	var properties, required []string
	for _, p := range t.params {
		kind := "string"
		if p.value(l, rng).number {
			kind = "integer"
		}
		properties = append(properties, fmt.Sprintf(`"%s": {"type": "%s"}`, p.name(), kind))
		required = append(required, strconv.Quote(p.name()))
	}
	schema := `{"type": "object", "properties": {` + strings.Join(properties, ", ") + "}"
	if chance(rng, 70) && len(required) > 0 {
		schema += `, "required": [` + strings.Join(required, ", ") + "]"
	}
	t.def = art.Tool{Name: t.name(), Parameters: json.RawMessage(schema + "}")}
	if chance(rng, 70) {
		t.def.Description = sentence(strings.Join(t.words, " ")) + "."
	}
}

// call is a request and what has to be called.
type call struct {
	request string
	call    art.ToolCall
}

// newCall draws a request for a tool. One with a single argument names its parameter in half of the cases.
func (l *lexicon) newCall(rng *rand.Rand, t tool) call {
	return l.callOf(rng, t, len(t.params) == 1 && chance(rng, 50))
}

// callOf draws a request that names the parameters, or that gives the value of the only one without its name.
func (l *lexicon) callOf(rng *rand.Rand, t tool, unnamed bool) call {
	values := make([]value, len(t.params))
	literals := make([]string, len(t.params))
	for i, p := range t.params {
		values[i] = p.value(l, rng)
		literals[i] = strconv.Quote(p.name()) + ": " + values[i].json()
	}
	return call{
		request: t.request(rng, values, unnamed),
		call:    art.ToolCall{Name: t.name(), Arguments: "{" + strings.Join(literals, ", ") + "}"},
	}
}

// request is what a user says: the words of the tool's name in their order, then the arguments in theirs.
func (t tool) request(rng *rand.Rand, values []value, unnamed bool) string {
	phrase := t.phrase(rng)
	switch {
	case len(values) == 0:
	case unnamed:
		phrase += pick(rng, []string{" ", " ", " for ", " of ", " to ", " in ", " with ", ": "}) + values[0].String()
	default:
		for i, v := range values {
			phrase += pick(rng, links(i)) + strings.Join(t.params[i].words, " ")
			phrase += pick(rng, []string{" ", " ", " ", " = ", ": "}) + v.String()
		}
	}
	return sentence(phrase) + pick(rng, []string{"", ".", ".", ".", "?"})
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
	case n < 50:
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
