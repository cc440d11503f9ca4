package main

import (
	"hash/fnv"
	"math"
	"math/rand/v2"
	"strings"
	"unicode"

	"github.com/goart-dev/art/model"
	"github.com/goart-dev/art/tokenizer"
)

// shared is the part of the variance of an embedding that tokens of the same letters have in common at first.
const shared = 0.8

// shareLetters lets the embeddings of "cancel", "Cancel" and " cancel" begin near each other, so that copying a word
// into another spelling is the same for all words, whether training has them or not.
func shareLetters(w *model.Weights, tok *tokenizer.Tokenizer, seed uint64) {
	embed := w.Tensors[0]
	width := embed.Shape[1]
	for id := range embed.Shape[0] {
		letters := strings.ToLower(strings.TrimSpace(tok.Decode([]int32{int32(id)}, false)))
		if letters == "" || strings.ContainsFunc(letters, func(r rune) bool { return !unicode.IsLetter(r) }) {
			continue
		}
		h := fnv.New64a()
		h.Write([]byte(letters))
		rng := rand.New(rand.NewPCG(seed, h.Sum64()))
		row := embed.Data[id*width : (id+1)*width]
		for i := range row {
			common := rng.NormFloat64() / math.Sqrt(float64(width))
			row[i] = float32(math.Sqrt(shared)*common) + float32(math.Sqrt(1-shared))*row[i]
		}
	}
}
