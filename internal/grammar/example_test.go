package grammar_test

import (
	"fmt"

	"github.com/goart-dev/art/internal/grammar"
)

// A vocabulary of bytes with two control tokens, which tool calls begin and end with, and an end of the sequence.
const toolCall, endToolCall, end = 256, 257, 258

func vocabulary() *grammar.Vocabulary {
	tokens := make([][]byte, 259)
	for b := range 256 {
		tokens[b] = []byte{byte(b)}
	}
	v, err := grammar.NewVocabulary(tokens, []int32{end})
	if err != nil {
		panic(err)
	}
	return v
}

// hermes is a call of one tool in the format of Hermes models.
func hermes(name, schema string) grammar.Grammar {
	return grammar.Sequence(
		grammar.Literal(fmt.Sprintf("\n{\"name\": %q, \"arguments\": ", name)),
		grammar.JSONSchema([]byte(schema), nil),
		grammar.Literal("}\n"),
	)
}

// Text, and then a call of one of two tools.
func Example_toolCall() {
	g := grammar.Sequence(
		grammar.Text(),
		grammar.Token(toolCall),
		grammar.Alternation(
			hermes("weather", `{"type":"object","properties":{"city":{"type":"string"}},"required":["city"],`+
				`"additionalProperties":false}`),
			hermes("time", `{"type":"object","properties":{"zone":{"enum":["UTC","CET"]}},"required":["zone"],`+
				`"additionalProperties":false}`),
		),
		grammar.Token(endToolCall),
	)
	c, err := grammar.Compile(g, vocabulary(), nil)
	if err != nil {
		panic(err)
	}
	m := c.Matcher()
	accept := func(text string) {
		for _, b := range []byte(text) {
			if err := m.Accept(int32(b)); err != nil {
				panic(err)
			}
		}
	}
	accept("Let me see. ")
	if err := m.Accept(toolCall); err != nil {
		panic(err)
	}
	fmt.Printf("%q\n", m.ForcedText())
	accept("\n{\"name\": \"t")
	fmt.Printf("%q\n", m.ForcedText())
	accept(`ime", "arguments": {"zone": "C`)
	fmt.Printf("%q\n", m.ForcedText())
	accept("ET\"}}\n")
	fmt.Println(m.Forced())
	// Output:
	// "\n{\"name\": \""
	// "ime\", \"arguments\": {\"zone\": \""
	// "ET\"}}\n"
	// 257 true
}
