package openai_test

import (
	"fmt"

	"github.com/goart-dev/art/tokenizer/openai"
)

func ExampleEncoding() {
	tok, err := openai.Encoding(openai.CL100K)
	if err != nil {
		panic(err)
	}
	ids := tok.Encode("hello world", false)
	fmt.Println(ids, tok.Decode(ids, false))
	// Output: [15339 1917] hello world
}
