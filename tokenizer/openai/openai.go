// Package openai has the encodings of OpenAI's models, for gpt-oss and for estimating the cost of hosted models.
//
// The vocabularies are those embedded in github.com/tiktoken-go/tokenizer, which add some megabytes to a program. Texts
// are encoded by package tokenizer, which gives the ids of OpenAI's own library; tiktoken-go splits some white space
// differently.
package openai

import (
	"fmt"
	"sync"

	"github.com/tiktoken-go/tokenizer/codec"

	"github.com/goart-dev/art/tokenizer"
)

// The encodings.
const (
	CL100K  = "cl100k_base"   // GPT-3.5, GPT-4
	O200K   = "o200k_base"    // GPT-4o and later
	Harmony = "o200k_harmony" // gpt-oss
)

// encodings are built on first use.
var encodings = map[string]func() (*tokenizer.Tokenizer, error){
	CL100K: sync.OnceValues(func() (*tokenizer.Tokenizer, error) {
		return build(codec.NewCl100kBase(), 100256, tokenizer.CL100KWords, cl100kSpecial)
	}),
	O200K: sync.OnceValues(func() (*tokenizer.Tokenizer, error) {
		return build(codec.NewO200kBase(), 199998, tokenizer.O200KWords, o200kSpecial)
	}),
	Harmony: sync.OnceValues(func() (*tokenizer.Tokenizer, error) {
		return build(codec.NewO200kBase(), 199998, tokenizer.O200KWords, harmonySpecial())
	}),
}

var cl100kSpecial = map[string]int32{
	"<|endoftext|>": 100257, "<|fim_prefix|>": 100258, "<|fim_middle|>": 100259, "<|fim_suffix|>": 100260,
	"<|endofprompt|>": 100276,
}

var o200kSpecial = map[string]int32{"<|endoftext|>": 199999, "<|endofprompt|>": 200018}

// harmonySpecial returns the control tokens of gpt-oss; reserved ones are numbered.
func harmonySpecial() map[string]int32 {
	out := map[string]int32{
		"<|startoftext|>": 199998, "<|endoftext|>": 199999, "<|return|>": 200002, "<|constrain|>": 200003,
		"<|channel|>": 200005, "<|start|>": 200006, "<|end|>": 200007, "<|message|>": 200008, "<|call|>": 200012,
		"<|endofprompt|>": 200018,
	}
	used := map[int32]bool{}
	for _, id := range out {
		used[id] = true
	}
	for id := int32(200000); id < 201088; id++ {
		if !used[id] {
			out[fmt.Sprintf("<|reserved_%d|>", id)] = id
		}
	}
	return out
}

// Encoding returns an encoding by name. The first call builds it, which takes a few tenths of a second.
func Encoding(name string) (*tokenizer.Tokenizer, error) {
	get, ok := encodings[name]
	if !ok {
		return nil, fmt.Errorf("tokenizer/openai: encoding %q is not known, only %s, %s and %s", name, CL100K, O200K, Harmony)
	}
	return get()
}

// build builds a tokenizer from the tokens of a codec, whose first ids are the ranks.
func build(c *codec.Codec, ranks int, words string, special map[string]int32) (*tokenizer.Tokenizer, error) {
	tokens := make([]string, ranks)
	for id := range tokens {
		text, err := c.Decode([]uint{uint(id)})
		if err != nil {
			return nil, fmt.Errorf("tokenizer/openai: token %d: %w", id, err)
		}
		tokens[id] = text
	}
	return tokenizer.FromRanks(tokens, words, special)
}
