package tokenizer

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// TestMerge compares the heap with the simple loop.
func TestMerge(t *testing.T) {
	m, rng := small(t).model.(*bpe), seeded(t)
	for range 2000 {
		word := randomWord(rng, 1+rng.IntN(longWord-1))
		short, ok := m.appendShort(nil, word)
		var long []int32
		for _, tok := range m.appendTokens(new(scratch), nil, word) {
			long = append(long, tok.id)
		}
		if !ok || !slices.Equal(short, long) {
			t.Fatalf("%q: %v by scanning all pairs, %v by the heap", word, short, long)
		}
	}
}

func randomWord(rng *rand.Rand, n int) string {
	const letters = "etaonihsrgd w"
	b := make([]byte, n)
	for i := range b {
		b[i] = letters[rng.IntN(len(letters))]
	}
	return string(b)
}
