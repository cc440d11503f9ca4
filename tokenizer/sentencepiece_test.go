package tokenizer

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// spCase is one text and the ids of SentencePiece's own library.
type spCase struct {
	Text string  `json:"s"`
	IDs  []int32 `json:"ids"`
}

// TestFromSentencePiece_Golden compares small models with SentencePiece's library. testdata/make_sentencepiece.py has
// the command that made the files.
func TestFromSentencePiece_Golden(t *testing.T) {
	runSentencePiece(t, "testdata/sentencepiece")
}

// TestReference_SentencePiece does the same with the released models of a folder.
func TestReference_SentencePiece(t *testing.T) {
	dir := os.Getenv("ART_TOKENIZER_DIR")
	if dir == "" {
		t.Skip("set ART_TOKENIZER_DIR; see TestReference")
	}
	runSentencePiece(t, filepath.Join(dir, "sentencepiece"))
}

func runSentencePiece(t *testing.T, dir string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.model"))
	must(t, err)
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			tok, err := FromSentencePiece(read(t, file))
			must(t, err)
			var cases []spCase
			must(t, json.Unmarshal(read(t, strings.TrimSuffix(file, ".model")+".json"), &cases))
			wrong := 0
			for _, c := range cases {
				if got := tok.EncodeOrdinary(c.Text); !slices.Equal(got, c.IDs) {
					if wrong++; wrong < 5 {
						t.Errorf("%+q:\n got %v\nwant %v", c.Text, got, c.IDs)
					}
				}
			}
			t.Logf("%d texts, %d wrong", len(cases), wrong)
		})
	}
}

// FuzzFromSentencePiece: any file is an error, or gives a tokenizer that encodes and decodes.
func FuzzFromSentencePiece(f *testing.F) {
	for _, name := range []string{"bpe-bytes", "unigram-plain"} {
		f.Add(testdata(f, "sentencepiece/"+name+".model"), "The agent reads <tool>  é")
	}
	f.Fuzz(func(t *testing.T, data []byte, text string) {
		if len(text) > 1000 {
			return
		}
		if tok, err := FromSentencePiece(data); err == nil {
			exercise(t, tok, text)
		}
	})
}
