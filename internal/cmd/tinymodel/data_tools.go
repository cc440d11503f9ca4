package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"

	"github.com/goart-dev/art"
)

// toolKind is a sort of tool: what it may be called, how it is asked for, and what comes of it.
type toolKind struct {
	names    []string // nil: an invented word
	about    []string
	params   []toolParam
	requests []string // {0}, {1} are the arguments, {name} is the tool's name
	result   func(rng *rand.Rand, args []any) string
	answers  []string // {result} is what the tool returned
	// sums tells that the assistant answers such a request itself when it has no tool for it.
	sums bool
}

// toolParam is a parameter: an integer or a string, as its values are.
type toolParam struct {
	names []string
	value func(*rand.Rand) any
}

// tool is a tool of a kind, under the names of one chat.
type tool struct {
	*toolKind
	name   string
	params []string
	def    art.Tool
}

var (
	sumAnswers  = []string{"{result}", "{result}", "The answer is {result}."}
	echoAnswers = []string{"{result}", "It says: {result}"}
	firstNumber = toolParam{[]string{"a", "x"}, smallNumber}
	otherNumber = toolParam{[]string{"b", "y"}, smallNumber}
	cityParam   = toolParam{[]string{"city", "city", "place"}, oneOf("Paris", "Rome", "Berlin", "London", "Madrid", "Oslo", "Tokyo", "Lima", "Cairo", "Delhi")}
	pathParam   = toolParam{[]string{"path", "path", "file"}, someFile}
)

// toolKinds are the tools there are. Their names differ, so that any of them can be offered together.
var toolKinds = []toolKind{
	{
		names: []string{"add", "sum", "plus"}, about: []string{"Add two numbers.", "Sum of two numbers."}, sums: true,
		params:   []toolParam{firstNumber, otherNumber},
		requests: []string{"What is {0} plus {1}?", "What is {0} + {1}?", "Add {0} and {1}.", "{0}+{1}=", "What is {0}+{1}?"},
		result:   ofNumbers(func(a, b int) int { return a + b }), answers: sumAnswers,
	},
	{
		names: []string{"subtract", "minus", "sub"}, about: []string{"Subtract two numbers.", "a minus b."}, sums: true,
		params:   []toolParam{firstNumber, otherNumber},
		requests: []string{"What is {0} minus {1}?", "What is {0} - {1}?", "{0}-{1}=", "What is {0}-{1}?"},
		result:   ofNumbers(func(a, b int) int { return a - b }), answers: sumAnswers,
	},
	{
		names: []string{"multiply", "times", "mul"}, about: []string{"Multiply two numbers.", "Product of two numbers."}, sums: true,
		params:   []toolParam{firstNumber, otherNumber},
		requests: []string{"What is {0} times {1}?", "What is {0} * {1}?", "Multiply {0} and {1}.", "{0}*{1}=", "Multiply {0} by {1}."},
		result:   ofNumbers(func(a, b int) int { return a * b }), answers: sumAnswers,
	},
	{
		names: []string{"weather", "get_weather"}, about: []string{"Weather of a city.", "Get the weather."},
		params:   []toolParam{cityParam},
		requests: []string{"What is the weather in {0}?", "Weather in {0}?", "How is the weather in {0}?", "Is it cold in {0}?"},
		result:   someWeather, answers: []string{"{result}", "It is {result}.", "It is {result} in {0}."},
	},
	{
		names: []string{"time", "get_time", "clock"}, about: []string{"Time in a city.", "Get the time."},
		params:   []toolParam{cityParam},
		requests: []string{"What time is it in {0}?", "The time in {0}?", "How late is it in {0}?"},
		result:   someTime, answers: []string{"{result}", "It is {result}.", "It is {result} in {0}."},
	},
	{
		names: []string{"search", "find", "web_search"}, about: []string{"Search the web.", "Find pages."},
		params:   []toolParam{{[]string{"query", "query", "text"}, someQuery}},
		requests: []string{"Search for {0}.", "Find pages about {0}.", "Look up {0}.", "search {0}"},
		result:   somePages, answers: []string{"I found {result}.", "{result}"},
	},
	{
		names: []string{"read", "read_file", "open"}, about: []string{"Read a file."},
		params:   []toolParam{pathParam},
		requests: []string{"Read {0}.", "Read the file {0}.", "What is in {0}?", "Show me {0}."},
		result:   someText, answers: echoAnswers,
	},
	{
		names: []string{"write", "write_file", "save"}, about: []string{"Write a file."},
		params:   []toolParam{pathParam, {[]string{"text", "content"}, someQuery}},
		requests: []string{"Write {1} to {0}.", "Save {1} in {0}.", "Put {1} into {0}."},
		result:   result("ok", "done"), answers: []string{"Done.", "It is in {0}."},
	},
	{
		names: []string{"phone", "get_phone"}, about: []string{"Phone number of a person.", "Get a phone number."},
		params:   []toolParam{{[]string{"name", "person"}, oneOf("Ann", "Bob", "Carl", "Dora", "Emma", "Finn", "Ida", "Max", "Nora", "Tom")}},
		requests: []string{"What is the phone number of {0}?", "Phone of {0}?", "How can I call {0}?"},
		result:   someDigits, answers: []string{"{result}", "{0}: {result}", "It is {result}."},
	},
	{
		names: []string{"roll", "roll_die", "dice"}, about: []string{"Roll a die."},
		params:   []toolParam{{[]string{"sides", "n"}, func(rng *rand.Rand) any { return pick(rng, []int{4, 6, 8, 10, 12, 20}) }}},
		requests: []string{"Roll a die with {0} sides.", "Roll a {0} sided die.", "Roll the dice: {0} sides"},
		result:   func(rng *rand.Rand, args []any) string { return strconv.Itoa(between(rng, 1, args[0].(int))) },
		answers:  []string{"{result}", "It is {result}."},
	},
	{ // teaches that the name comes from the list of tools and not from memory
		about:    []string{"Use it with a word.", "Looks up a word.", "A tool."},
		params:   []toolParam{{[]string{"word", "key", "input"}, func(rng *rand.Rand) any { return someWord(rng) }}},
		requests: []string{"Use {name} with {0}.", "Call {name} with {0}.", "Run {name} on {0}.", "{name} {0}"},
		result:   someText, answers: echoAnswers,
	},
	{
		about:    []string{"Use it with a number.", "Looks up a number.", "A tool."},
		params:   []toolParam{{[]string{"id", "number", "n"}, smallNumber}},
		requests: []string{"Use {name} with {0}.", "Call {name} with {0}.", "Run {name} on {0}.", "{name} {0}"},
		result:   someText, answers: echoAnswers,
	},
}

// newTool chooses the names of a tool and how much its definition says.
func (k *toolKind) newTool(rng *rand.Rand) tool {
	t := tool{toolKind: k}
	if k.names != nil {
		t.name = pick(rng, k.names)
	} else {
		t.name = inventedWord(rng)
	}
	var properties, required []string
	for _, p := range k.params {
		name := pick(rng, p.names)
		t.params = append(t.params, name)
		properties = append(properties, fmt.Sprintf(`"%s": {"type": "%s"}`, name, p.schemaType(rng)))
		required = append(required, strconv.Quote(name))
	}
	schema := `{"type": "object", "properties": {` + strings.Join(properties, ", ") + "}"
	if chance(rng, 50) {
		schema += requiredKey + strings.Join(required, ", ") + "]"
	}
	t.def = art.Tool{Name: t.name, Parameters: json.RawMessage(schema + "}")}
	if chance(rng, 60) {
		t.def.Description = pick(rng, k.about)
	}
	return t
}

// requiredKey begins the last key of a schema.
const requiredKey = `, "required": [`

// bare returns a tool without what its definition can do without: the description, and which parameters are required.
func bare(t art.Tool) art.Tool {
	schema, _, cut := strings.Cut(string(t.Parameters), requiredKey)
	if cut {
		schema += "}"
	}
	return art.Tool{Name: t.Name, Parameters: json.RawMessage(schema)}
}

// schemaType is the type of the parameter in JSON Schema.
func (p toolParam) schemaType(rng *rand.Rand) string {
	if _, ok := p.value(rng).(int); ok {
		return "integer"
	}
	return "string"
}

func smallNumber(rng *rand.Rand) any {
	if chance(rng, 10) {
		return between(rng, 100, 999)
	}
	return operand(rng)
}

func oneOf(words ...string) func(*rand.Rand) any {
	return func(rng *rand.Rand) any { return pick(rng, words) }
}

func someFile(rng *rand.Rand) any {
	return someWord(rng) + pick(rng, []string{".txt", ".md", ".go", ".txt"})
}

func someQuery(rng *rand.Rand) any { return strings.Join(someWords(rng, between(rng, 1, 2)), " ") }

// result returns one of the texts.
func result(texts ...string) func(*rand.Rand, []any) string {
	return func(rng *rand.Rand, _ []any) string { return pick(rng, texts) }
}

// ofNumbers computes a result from two integer arguments.
func ofNumbers(f func(a, b int) int) func(*rand.Rand, []any) string {
	return func(_ *rand.Rand, args []any) string { return strconv.Itoa(f(args[0].(int), args[1].(int))) }
}

func someWeather(rng *rand.Rand, _ []any) string {
	return fmt.Sprintf("%s, %d C", pick(rng, []string{"sunny", "rainy", "cloudy", "windy", "snowy"}), between(rng, 0, 35))
}

func someTime(rng *rand.Rand, _ []any) string {
	return fmt.Sprintf("%02d:%02d", rng.IntN(24), rng.IntN(60))
}

func somePages(rng *rand.Rand, args []any) string {
	return fmt.Sprintf("%d pages about %s", between(rng, 2, 99), args[0])
}

func someText(rng *rand.Rand, _ []any) string {
	return strings.Join(someWords(rng, between(rng, 1, 2)), " ")
}

func someDigits(rng *rand.Rand, _ []any) string { return strconv.Itoa(between(rng, 1000, 9999)) }
