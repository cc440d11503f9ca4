package openai

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tiktoken-go/tokenizer/codec"
)

// TestEncoding compares with OpenAI's library, tiktoken 0.14.0, on the same ranks; testdata/make_golden.py has the
// command.
func TestEncoding(t *testing.T) {
	var golden map[string][]struct {
		Text string  `json:"s"`
		IDs  []int32 `json:"ids"`
	}
	read(t, filepath.Join("testdata", "golden.json"), &golden)
	for name, cases := range golden {
		tok, err := Encoding(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range cases {
			if got := tok.Encode(c.Text, false); !slices.Equal(got, c.IDs) {
				t.Errorf("%s: %+q:\n got %v\nwant %v", name, c.Text, got, c.IDs)
			}
			if got := string(tok.DecodeBytes(c.IDs, false)); got != c.Text {
				t.Errorf("%s: %+q comes back as %+q", name, c.Text, got)
			}
		}
		t.Logf("%s: %d texts, %d ids", name, len(cases), tok.VocabSize())
	}
	if len(golden) != len(encodings) {
		t.Errorf("goldens of %d encodings, not %d", len(golden), len(encodings))
	}
}

// TestReference compares with cases of the same vocabularies recorded from Hugging Face's library; see TestReference of
// package tokenizer.
func TestReference(t *testing.T) {
	dir := os.Getenv("ART_TOKENIZER_DIR")
	if dir == "" {
		t.Skip("set ART_TOKENIZER_DIR")
	}
	for folder, name := range map[string]string{"gptoss": Harmony} {
		var recorded struct {
			Cases []struct {
				Text string  `json:"s"`
				IDs  []int32 `json:"ids"`
			}
		}
		read(t, filepath.Join(dir, folder, "cases.json"), &recorded)
		tok, err := Encoding(name)
		if err != nil {
			t.Fatal(err)
		}
		wrong := 0
		for _, c := range recorded.Cases {
			if got := tok.Encode(c.Text, false); !slices.Equal(got, c.IDs) {
				if wrong++; wrong <= 3 {
					t.Errorf("%s: %+q:\n got %v\nwant %v", name, c.Text, got, c.IDs)
				}
			}
		}
		t.Logf("%s: %d texts, %d wrong", name, len(recorded.Cases), wrong)
	}
}

func read(t *testing.T, path string, to any) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(data, to)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestEncoding_Unknown(t *testing.T) {
	if _, err := Encoding("p9"); err == nil || !strings.Contains(err.Error(), O200K) {
		t.Errorf("error %v", err)
	}
}

func TestEncoding_Special(t *testing.T) {
	tok, err := Encoding(Harmony)
	if err != nil {
		t.Fatal(err)
	}
	ids := tok.Encode("<|start|>user<|message|>Hi<|end|>", false)
	if ids[0] != 200006 || ids[len(ids)-1] != 200007 || len(ids) != 5 {
		t.Errorf("ids %v", ids)
	}
	if ids := tok.EncodeOrdinary("<|start|>"); slices.Contains(ids, 200006) {
		t.Errorf("ordinary text became a special token: %v", ids)
	}
}

// tiktokenWords is the pattern of cl100k_base as tiktoken's openai_public.py has it.
const tiktokenWords = `'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+` +
	`| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s`

// TestFromRanks_TiktokensPattern: tiktoken's own pattern gives its ids; it once gave others, for example for "1415".
func TestFromRanks_TiktokensPattern(t *testing.T) {
	tok, err := build(codec.NewCl100kBase(), 100256, tiktokenWords, cl100kSpecial)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := tok.Encode("1415", false), []int32{9335, 20}; !slices.Equal(got, want) {
		t.Errorf("ids %v, want %v", got, want)
	}
	var golden map[string][]struct {
		Text string  `json:"s"`
		IDs  []int32 `json:"ids"`
	}
	read(t, filepath.Join("testdata", "golden.json"), &golden)
	for _, c := range golden[CL100K] {
		if got := tok.Encode(c.Text, false); !slices.Equal(got, c.IDs) {
			t.Errorf("%+q:\n got %v\nwant %v", c.Text, got, c.IDs)
		}
	}
}
