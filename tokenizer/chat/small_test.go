package chat

import (
	"encoding/json"
	"path/filepath"
	"sync"
	"testing"

	"github.com/goart-dev/art/internal/dev/tokentest"
	"github.com/goart-dev/art/tokenizer"
)

var (
	must       = tokentest.Must
	read       = tokentest.Read
	seeded     = tokentest.Rand
	randomText = tokentest.Text
)

// vocabularyFile is our own vocabulary of 542 tokens with the control tokens of ChatML.
func vocabularyFile(t testing.TB) []byte {
	t.Helper()
	return read(t, filepath.Join("..", "testdata", "tokenizer.json"))
}

// patched returns the small vocabulary with some sections of its file replaced; those of "model" one by one.
func patched(t testing.TB, patch map[string]json.RawMessage) []byte {
	t.Helper()
	return tokentest.Patch(t, vocabularyFile(t), patch)
}

// small is the tokenizer of that vocabulary.
func small(t testing.TB) *tokenizer.Tokenizer {
	t.Helper()
	return configured(t, map[string]any{"eos_token": "<|im_end|>"})
}

// configured is the small vocabulary with a configuration.
func configured(t testing.TB, config map[string]any) *tokenizer.Tokenizer {
	t.Helper()
	data, err := json.Marshal(config)
	must(t, err)
	tok, err := tokenizer.New(vocabularyFile(t), data)
	must(t, err)
	return tok
}

// smallFormat is the format of a parser over the small vocabulary.
func smallFormat(t testing.TB, parser, template string) *replyFormat {
	t.Helper()
	tok := small(t)
	v := &vocabulary{tok, tok.AddedTokens()}
	return v.replyFormat(parser, template)
}

// byteIDs are the ids of single bytes, by tokenizer.
var byteIDs sync.Map

// byteID is the id of a single byte.
func byteID(v *vocabulary, b byte) int32 {
	cached, ok := byteIDs.Load(v.Tokenizer)
	if !ok {
		var ids [256]int32
		for id := range int32(v.VocabSize()) {
			if bytes := v.TokenBytes(id); len(bytes) == 1 && !v.IsSpecial(id) {
				ids[bytes[0]] = id
			}
		}
		cached, _ = byteIDs.LoadOrStore(v.Tokenizer, ids)
	}
	return cached.([256]int32)[b]
}
