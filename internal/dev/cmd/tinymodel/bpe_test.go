package main

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/goart-dev/art/tokenizer"
)

const testPattern = `\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`

var testSpecials = []string{"<|im_start|>", "<|im_end|>"}

// plainBPE learns a vocabulary of the given size without variants.
func plainBPE(corpus []string, size int, pattern string, specials []string) ([]byte, error) {
	words, err := countWords(corpus, pattern)
	if err != nil {
		return nil, err
	}
	l := newLearner(words)
	for len(l.tokens) < size-len(specials) && l.mergeBest() {
	}
	return tokenizerJSON(l.tokens, l.merges, pattern, specials)
}

func TestTrainBPE_LoadsAndRoundTrips(t *testing.T) {
	data, err := plainBPE([]string{"the cat and the hat", "déjà vu, the 2nd time\n"}, 300, testPattern, testSpecials)
	if err != nil {
		t.Fatal(err)
	}
	tok, err := tokenizer.New(data, nil)
	if err != nil {
		t.Fatal(err)
	}
	if tok.VocabSize() > 300 {
		t.Errorf("vocabulary of %d, more than was asked for", tok.VocabSize())
	}
	id, ok := tok.TokenID("<|im_end|>")
	if !ok || int(id) != tok.VocabSize()-1 || !tok.IsSpecial(id) {
		t.Errorf("<|im_end|> has id %d (%v); it must be the last and special", id, ok)
	}
	if _, ok := tok.TokenID("the"); !ok {
		t.Error("the most frequent word is not a token")
	}
	for _, text := range []string{"", "the hat", "日本 😀\t\r\n", "\x00\x7f"} {
		if got := tok.Decode(tok.Encode(text, true), false); got != text {
			t.Errorf("%q comes back as %q", text, got)
		}
	}
}

func TestTrainBPE_Deterministic(t *testing.T) {
	corpus := []string{"ab cd ab cd", "ba dc ba dc", "xyxyxy xyxyxy"}
	first, err := plainBPE(corpus, 280, testPattern, testSpecials)
	if err != nil {
		t.Fatal(err)
	}
	for range 5 {
		again, err := plainBPE(corpus, 280, testPattern, testSpecials)
		if err != nil || !bytes.Equal(first, again) {
			t.Fatalf("a second run differs (err %v)", err)
		}
	}
}

// TestTrainBPE_Greedy holds the incremental counts against counting everything again for each merge.
func TestTrainBPE_Greedy(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	for range 50 {
		words, err := countWords([]string{randomText(rng)}, testPattern)
		if err != nil {
			t.Fatal(err)
		}
		l := newLearner(words)
		for {
			want, count := mostFrequent(l.words)
			if !l.mergeBest() {
				if count > 1 {
					t.Fatalf("stopped although %v occurs %d times", want, count)
				}
				break
			}
			if got := l.merges[len(l.merges)-1]; got != want {
				t.Fatalf("merged %v, but %v comes first", got, want)
			}
		}
	}
}

func randomText(rng *rand.Rand) string {
	var b strings.Builder
	for range 200 {
		b.WriteByte("aabbc e"[rng.IntN(7)])
	}
	return b.String()
}

func mostFrequent(words []word) (best idPair, count int) {
	counts := map[idPair]int{}
	for _, w := range words {
		for k := 1; k < len(w.ids); k++ {
			counts[idPair{w.ids[k-1], w.ids[k]}] += w.count
		}
	}
	for p, n := range counts {
		if n > count || n == count && slices.Compare(p[:], best[:]) < 0 {
			best, count = p, n
		}
	}
	return best, count
}

func TestTrainBPE_NoMergeAcrossWords(t *testing.T) {
	data, err := plainBPE([]string{strings.Repeat("ab1", 100)}, 300, testPattern, nil)
	if err != nil {
		t.Fatal(err)
	}
	var f struct{ Model struct{ Merges [][2]string } }
	if err := json.Unmarshal(data, &f); err != nil {
		t.Fatal(err)
	}
	if len(f.Model.Merges) != 1 || f.Model.Merges[0] != [2]string{"a", "b"} {
		t.Errorf("merges %v, want only a+b", f.Model.Merges)
	}
}

func TestTrainBPE_Errors(t *testing.T) {
	for _, c := range []struct {
		pattern  string
		specials []string
		want     string
	}{
		{"(", nil, "pattern"},
		{testPattern, []string{"<a>", "<a>"}, "listed twice"},
		{testPattern, []string{""}, "empty"},
		{testPattern, []string{"a"}, "ordinary token"},
	} {
		if _, err := trainBPE(nil, 40, c.pattern, c.specials); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("pattern %q, specials %q: error %v does not say %q", c.pattern, c.specials, err, c.want)
		}
	}
}

// TestTrainBPE_Testdata holds the vocabulary that the tests of package tokenizer use. To write it again:
//
//	ART_UPDATE=1 go test -run Testdata ./internal/dev/cmd/tinymodel
func TestTrainBPE_Testdata(t *testing.T) {
	dir := filepath.Join("..", "..", "..", "..", "tokenizer", "testdata")
	corpus, err := os.ReadFile(filepath.Join(dir, "corpus.txt"))
	if err != nil {
		t.Fatal(err)
	}
	const qwenWords = `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}|` +
		` ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
	got, err := plainBPE([]string{string(corpus)}, 640, qwenWords, []string{"<|endoftext|>", "<|im_start|>", "<|im_end|>",
		"<think>", "</think>", "<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>"})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "tokenizer.json")
	if os.Getenv("ART_UPDATE") != "" {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("training gives another vocabulary than %s", path)
	}
}
