package main

import (
	"testing"

	"github.com/goart-dev/art/model/tiny"
	"github.com/goart-dev/art/tokenizer"
	"github.com/goart-dev/art/tokenizer/chat"
)

// TestTokenizerConfig_IsCommitted: the tiny model's configuration is what this command writes.
func TestTokenizerConfig_IsCommitted(t *testing.T) {
	vocab, committed := tiny.Tokenizer()
	tok, err := tokenizer.New(vocab, committed)
	if err != nil {
		t.Fatal(err)
	}
	template, err := chat.New(tok, chat.ChatML)
	if err != nil {
		t.Fatal(err)
	}
	want, err := tokenizerConfig(template.Source())
	if err != nil {
		t.Fatal(err)
	}
	if string(committed) != string(want) {
		t.Errorf("model/tiny/tokenizer_config.json is\n%s\nwant\n%s", committed, want)
	}
	if own, err := chat.New(tok, ""); err != nil || own.Name() != chat.ChatML {
		t.Errorf("the model's own template is %v (%v)", own, err)
	}
}
