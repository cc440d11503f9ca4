package tokenizer

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// benchmarks runs a benchmark for each vocabulary that internal/dev/bench/tokenizer/speed.py names, with its corpus of
// distinct words.
func benchmarks(b *testing.B, run func(b *testing.B, file []byte, text string)) {
	dir, names := os.Getenv("ART_TOKENIZER_DIR"), strings.Fields(os.Getenv("ART_TOKENIZER_NAMES"))
	if dir == "" || len(names) == 0 {
		b.Skip("internal/dev/bench/tokenizer/speed.py runs this")
	}
	text := string(read(b, filepath.Join(dir, "corpus.txt")))
	for _, name := range names {
		b.Run(name, func(b *testing.B) { run(b, read(b, filepath.Join(dir, name, "tokenizer.json")), text) })
	}
}

// BenchmarkReference_Encode encodes words that are new to the tokenizer: its cache is cleared before each pass.
func BenchmarkReference_Encode(b *testing.B) {
	benchmarks(b, func(b *testing.B, file []byte, text string) {
		tok, err := New(file, nil)
		must(b, err)
		b.SetBytes(int64(len(text)))
		for b.Loop() {
			b.StopTimer()
			tok.forget()
			b.StartTimer()
			tok.Encode(text, false)
		}
	})
}

// forget empties the cache of words. It is for one goroutine.
func (t *Tokenizer) forget() {
	s := t.pool.get()
	clear(s.cache)
	t.pool.Put(s)
}

func BenchmarkReference_EncodeOffsets(b *testing.B) {
	benchmarks(b, func(b *testing.B, file []byte, text string) {
		tok, err := New(file, nil)
		must(b, err)
		b.SetBytes(int64(len(text)))
		for b.Loop() {
			tok.EncodeOffsets(text, false)
		}
	})
}

func BenchmarkReference_New(b *testing.B) {
	benchmarks(b, func(b *testing.B, file []byte, _ string) {
		for b.Loop() {
			if _, err := New(file, nil); err != nil {
				b.Fatal(err)
			}
		}
	})
}
