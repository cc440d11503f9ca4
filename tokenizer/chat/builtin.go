package chat

import (
	"embed"
	"fmt"
	"sync"
)

// The built-in formats, for models that come without a template.
const (
	// ChatML is the format of Qwen and others: "<|im_start|>role\ncontent<|im_end|>\n", with tools as Hermes has them.
	ChatML = "chatml"
	// Llama2 is the format of the chat models of Llama 2: "[INST] content [/INST]". It has no tools.
	Llama2 = "llama2"
	// Alpaca is the format of Stanford's Alpaca: "### Instruction:" and "### Response:". It has no tools.
	Alpaca = "alpaca"
)

//go:embed formats/*.jinja
var formatFiles embed.FS

// builtin is a template that is part of this package.
type builtin struct {
	source string
	tokens []string // added tokens that the vocabulary must have
	named  []string // special tokens that the tokenizer must name
}

var builtins = sync.OnceValue(func() map[string]builtin {
	out := map[string]builtin{
		ChatML: {tokens: []string{"<|im_start|>", "<|im_end|>"}},
		Llama2: {named: []string{"bos_token", "eos_token"}},
		Alpaca: {named: []string{"eos_token"}},
	}
	for name, b := range out {
		source, err := formatFiles.ReadFile("formats/" + name + ".jinja")
		if err != nil {
			panic("chat: " + err.Error()) // it is embedded
		}
		b.source = string(source)
		out[name] = b
	}
	return out
})

// builtin returns a built-in template, if the vocabulary has the tokens that it needs.
func (v *vocabulary) builtin(name string, b builtin) (*Template, error) {
	for _, token := range b.tokens {
		if _, ok := v.added[token]; !ok {
			return nil, fmt.Errorf("chat: format %q: the vocabulary has no token %s", name, token)
		}
	}
	special := v.SpecialTokens()
	for _, token := range b.named {
		if _, ok := special[token]; !ok {
			return nil, fmt.Errorf("chat: format %q: the tokenizer has no %s", name, token)
		}
	}
	return v.newTemplate(name, b.source, b.source)
}
