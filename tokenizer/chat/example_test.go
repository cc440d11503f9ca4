package chat_test

import (
	"fmt"
	"os"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/tokenizer"
	"github.com/goart-dev/art/tokenizer/chat"
)

// exampleTokenizer is the small vocabulary that the tests use. A program would call Load with a model's folder.
func exampleTokenizer() *tokenizer.Tokenizer {
	file, err := os.ReadFile("../testdata/tokenizer.json")
	if err != nil {
		panic(err)
	}
	tok, err := tokenizer.New(file, nil)
	if err != nil {
		panic(err)
	}
	return tok
}

func ExampleTemplate_Prompt() {
	tok := exampleTokenizer()
	template, err := chat.New(tok, "")
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
	template, err := chat.New(tok, chat.ChatML)
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
	// vMarJyxpV weather {"city": "Paris"}
}

func ExampleTemplate_Stream() {
	tok := exampleTokenizer()
	template, err := chat.New(tok, chat.ChatML)
	if err != nil {
		panic(err)
	}
	reply := tok.Encode("I look.\n<tool_call>\n"+
		"{\"name\": \"weather\", \"arguments\": {\"city\": \"Paris\"}}\n</tool_call><|im_end|>", false)
	content, arguments := "", ""
	reader := template.Stream(nil, nil)
	for _, id := range reply {
		delta := reader.Add(id)
		content += delta.Content
		for _, call := range delta.ToolCalls {
			if call.Name != "" {
				fmt.Printf("%q, then %s\n", content, call.Name)
			}
			arguments += call.Arguments
		}
	}
	_, message, err := reader.Close()
	fmt.Println(arguments == message.ToolCalls[0].Arguments, err)
	// Output:
	// "I look.", then weather
	// true <nil>
}
