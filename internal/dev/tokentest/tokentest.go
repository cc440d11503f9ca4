// Package tokentest has what the tests of tokenizer and tokenizer/chat share: variants of a tokenizer.json, and random
// texts and ids.
package tokentest

import (
	"encoding/json"
	"maps"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
)

// Read returns the contents of a file.
func Read(t testing.TB, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	Must(t, err)
	return data
}

// Must ends a test if there is an error.
func Must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Patch returns a tokenizer.json with some of its sections replaced; those of "model" one by one.
func Patch(t testing.TB, file []byte, patch map[string]json.RawMessage) []byte {
	t.Helper()
	var base, model, modelPatch map[string]json.RawMessage
	Must(t, json.Unmarshal(file, &base))
	Must(t, json.Unmarshal(base["model"], &model))
	if patch["model"] != nil {
		Must(t, json.Unmarshal(patch["model"], &modelPatch))
	}
	maps.Copy(base, patch)
	maps.Copy(model, modelPatch)
	var err error
	base["model"], err = json.Marshal(model)
	Must(t, err)
	out, err := json.Marshal(base)
	Must(t, err)
	return out
}

// Rand returns a generator whose seed is in the log.
func Rand(t testing.TB) *rand.Rand {
	t.Helper()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}

// Pieces are what random texts consist of: words, white space, marks, control characters, and the tags of chats.
var Pieces = []string{
	"the ", "agent", " board", "it's", "12", "3456", " ", "  ", "\n", "\r\n", "\t", "é", "e\u0301", "日本", "😀",
	"👨\u200d👩", "\u00a0", "\x00", "\u0301\u0323", "ж", "<|im_start|>", "<|im_end|>",
	"<|im_", "<think>", "</think>", "<tool_call>", "</tool_call>",
	"{\"name\": ", "}", "\"", "\\", "<", ">", "x", "\uFFFD", "\U0010FFFF",
}

// Text returns a random text.
func Text(rng *rand.Rand) string {
	var b strings.Builder
	for range rng.IntN(12) {
		b.WriteString(Pieces[rng.IntN(len(Pieces))])
	}
	return b.String()
}

// IDs returns ids that no text encodes to. Half of them are below 256: in the vocabulary of the tests these are single
// bytes, many of them not UTF-8.
func IDs(rng *rand.Rand, vocabSize int) []int32 {
	ids := make([]int32, rng.IntN(20))
	for i := range ids {
		ids[i] = int32(rng.IntN(vocabSize))
		if rng.IntN(2) == 0 {
			ids[i] = int32(rng.IntN(256))
		}
	}
	return ids
}
