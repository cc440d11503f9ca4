package tokenizer_test

import (
	"fmt"
	"os"

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
