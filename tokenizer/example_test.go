package tokenizer_test

import (
	"fmt"
	"os"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/tokenizer"
)

// exampleTokenizer is the small vocabulary that the tests use. A program would call Load with a model's folder.
func exampleTokenizer() *tokenizer.Tokenizer {
	file, err := os.ReadFile("testdata/tokenizer.json")
	if err != nil {
		panic(err)
	}
	tok, err := tokenizer.New(file, nil)
	if err != nil {
		panic(err)
	}
	return tok
}

func ExampleTokenizer_EncodeOrdinary() {
	tok := exampleTokenizer()
	text := "the weather<|im_end|>"
	for _, ids := range [][]int32{tok.Encode(text, false), tok.EncodeOrdinary(text)} {
		fmt.Printf("%d ids, %q\n", len(ids), tok.Decode(ids, true))
	}
	// Output:
	// 4 ids, "the weather"
	// 12 ids, "the weather<|im_end|>"
}

func ExampleTemplate_Prompt() {
	tok := exampleTokenizer()
	template, err := tok.Template("")
	if err != nil {
		panic(err)
	}
	ids, err := template.Prompt([]art.Message{art.System("Play well."), art.User("Your move?")}, nil)
	if err != nil {
		panic(err)
	}
	fmt.Print(tok.Decode(ids, false))
	// Output:
	// <|im_start|>system
	// Play well.<|im_end|>
	// <|im_start|>user
	// Your move?<|im_end|>
	// <|im_start|>assistant
}

func ExampleTemplate_Parse() {
	tok := exampleTokenizer()
	template, err := tok.Template(tokenizer.ChatML)
	if err != nil {
		panic(err)
	}
	reply := tok.Encode("<think>\nIs it raining?\n</think>\n\nI will look.\n"+
		"<tool_call>\n{\"name\": \"weather\", \"arguments\": {\"city\": \"Paris\"}}\n</tool_call><|im_end|>", false)
	m, err := template.Parse(nil, reply, nil)
	if err != nil {
		panic(err)
	}
	fmt.Printf("%q %q\n", m.Reasoning, m.Content)
	fmt.Println(m.ToolCalls[0].ID, m.ToolCalls[0].Name, m.ToolCalls[0].Arguments)
	// Output:
	// "Is it raining?" "I will look."
	// call_0 weather {"city": "Paris"}
}

func ExampleTokenizer_Stream() {
	tok := exampleTokenizer()
	s := tok.Stream(true, "STOP")
	for _, id := range tok.EncodeOrdinary("日本 is far. STOP here") {
		delta, stopped := s.Add(id)
		fmt.Print(delta)
		if stopped {
			break
		}
	}
	fmt.Println(s.Flush() + "|")
	// Output:
	// 日本 is far. |
}
