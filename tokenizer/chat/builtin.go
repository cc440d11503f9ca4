package chat

import (
	"embed"
	"fmt"
	"sync"
)

// ChatML is the built-in format of Qwen and others: "<|im_start|>role\ncontent<|im_end|>\n", with tools as Hermes has
// them.
const ChatML = "chatml"

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
		ChatML:   {tokens: []string{"<|im_start|>", "<|im_end|>"}},
		"llama2": {named: []string{"bos_token", "eos_token"}},
		"alpaca": {named: []string{"eos_token"}},
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
