package tokenizer

import (
	"encoding/json"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"github.com/goart-dev/art/internal/dev/tokentest"
)

var (
	must       = tokentest.Must
	read       = tokentest.Read
	seeded     = tokentest.Rand
	randomText = tokentest.Text
)

// testdata reads a file of the folder of that name.
func testdata(t testing.TB, name string) []byte {
	t.Helper()
	return read(t, filepath.Join("testdata", name))
}

// small is our own vocabulary of 542 tokens with the control tokens of ChatML.
func small(t testing.TB) *Tokenizer {
	t.Helper()
	tok, err := New(testdata(t, "tokenizer.json"), []byte(`{"eos_token": "<|im_end|>"}`))
	must(t, err)
	return tok
}

// patched returns tokenizer.json of testdata with some of its sections replaced; those of "model" one by one.
func patched(t testing.TB, patch map[string]json.RawMessage) []byte {
	t.Helper()
	return tokentest.Patch(t, testdata(t, "tokenizer.json"), patch)
}

// randomIDs are ids that no text encodes to.
func randomIDs(rng *rand.Rand, tok *Tokenizer) []int32 { return tokentest.IDs(rng, tok.VocabSize()) }

// byteID is the id of a single byte.
func byteID(tok *Tokenizer, b byte) int32 { return tok.model.(*bpe).symbol[b] }
