package tokenizer

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// referenceCase is one text and what Hugging Face's tokenizers returns for it. Decoded is the text of the ids with
// special tokens; in the shared files, without.
type referenceCase struct {
	Text        string   `json:"s"`
	IDs         []int32  `json:"ids"`
	Special     []int32  `json:"sp"`
	Offsets     [][2]int `json:"offs"`  // of IDs, in characters
	SpecialAt   [][2]int `json:"offsp"` // of Special
	Decoded     string   `json:"dec"`
	DecodedSkip string   `json:"decs"`
}

// brokenCase is ids that no text encodes to, and their text.
type brokenCase struct {
	IDs         []int32 `json:"ids"`
	Decoded     string  `json:"dec"`
	DecodedSkip string  `json:"decs"`
}

// TestReference runs cases recorded from Hugging Face's tokenizers with vocabularies of released models, which are not
// committed: the scripts of internal/dev/bench/tokenizer write them to folders of ART_TOKENIZER_DIR, each with a
// cases.json. If ART_SHARED is set, its folder tokenizers has further cases.
func TestReference(t *testing.T) {
	dir, shared := os.Getenv("ART_TOKENIZER_DIR"), os.Getenv("ART_SHARED")
	if dir == "" {
		t.Skip("set ART_TOKENIZER_DIR to a folder of vocabularies and cases; see the comment of this test")
	}
	files, err := filepath.Glob(filepath.Join(dir, "*", "tokenizer.json"))
	must(t, err)
	if len(files) == 0 {
		t.Fatalf("%s has no folder with a tokenizer.json", dir)
	}
	for _, file := range files {
		name := filepath.Base(filepath.Dir(file))
		t.Run(name, func(t *testing.T) {
			tok, err := New(read(t, file), nil)
			must(t, err)
			if data, err := os.ReadFile(filepath.Join(filepath.Dir(file), "cases.json")); err == nil {
				var recorded struct {
					Cases  []referenceCase
					Broken []brokenCase
				}
				must(t, json.Unmarshal(data, &recorded))
				runReference(t, tok, recorded.Cases)
				runBroken(t, tok, recorded.Broken)
			}
			if data, err := os.ReadFile(filepath.Join(shared, "tokenizers", name+".json")); shared != "" && err == nil {
				var cases []referenceCase
				must(t, json.Unmarshal(data, &cases))
				runReference(t, tok, cases)
			}
		})
	}
}

// maxShown is how many mismatches of a kind are printed.
const maxShown = 5

func runReference(t *testing.T, tok *Tokenizer, cases []referenceCase) {
	t.Helper()
	exact, wrong := map[string]int{}, map[string]int{}
	check := func(what, text string, got, want any, same bool) {
		if same {
			exact[what]++
			return
		}
		if wrong[what]++; wrong[what] <= maxShown {
			t.Errorf("%s of %+q:\n got %v\nwant %v", what, text, got, want)
		}
	}
	for _, c := range cases {
		ids, special := tok.Encode(c.Text, false), tok.Encode(c.Text, true)
		check("encode", c.Text, ids, c.IDs, slices.Equal(ids, c.IDs))
		check("encode special", c.Text, special, c.Special, slices.Equal(special, c.Special))
		if c.Offsets != nil {
			ids, spans := tok.EncodeOffsets(c.Text, false)
			check("ids with offsets", c.Text, ids, c.IDs, slices.Equal(ids, c.IDs))
			offsets := inRunes(c.Text, spans)
			check("offsets", c.Text, offsets, c.Offsets, slices.Equal(offsets, c.Offsets))
		}
		if c.SpecialAt != nil {
			ids, spans := tok.EncodeOffsets(c.Text, true)
			check("special ids with offsets", c.Text, ids, c.Special, slices.Equal(ids, c.Special))
			offsets := inRunes(c.Text, spans)
			check("special offsets", c.Text, offsets, c.SpecialAt, slices.Equal(offsets, c.SpecialAt))
		}
		of := c.Special
		if c.SpecialAt == nil {
			of = c.IDs
		}
		dec, skip := tok.Decode(of, false), tok.Decode(of, true)
		check("decode", c.Text, dec, c.Decoded, dec == c.Decoded)
		check("decode skip", c.Text, skip, c.DecodedSkip, skip == c.DecodedSkip)
	}
	t.Logf("%d texts; exact: %v; wrong: %v", len(cases), exact, wrong)
}

// inRunes converts spans in bytes to spans in characters.
func inRunes(text string, spans []Span) [][2]int {
	at := make([]int, len(text)+1)
	n := 0
	for i := range text {
		at[i] = n
		n++
	}
	at[len(text)] = n
	out := make([][2]int, len(spans))
	for i, s := range spans {
		out[i] = [2]int{at[s.Start], at[s.End]}
	}
	return out
}

func runBroken(t *testing.T, tok *Tokenizer, cases []brokenCase) {
	t.Helper()
	for _, c := range cases {
		for skip, want := range map[bool]string{false: c.Decoded, true: c.DecodedSkip} {
			if got := tok.Decode(c.IDs, skip); got != want || !utf8.ValidString(got) {
				t.Errorf("decode of %v, without special tokens %v:\n got %+q\nwant %+q", c.IDs, skip, got, want)
			}
		}
	}
}

// TestReference_Recorded compares released vocabularies with committed digests:
// internal/dev/bench/tokenizer/recorded.py has the command that made them. It needs only the vocabularies, in folders
// of ART_TOKENIZER_DIR.
func TestReference_Recorded(t *testing.T) {
	dir := os.Getenv("ART_TOKENIZER_DIR")
	if dir == "" {
		t.Skip("set ART_TOKENIZER_DIR; see TestReference")
	}
	var recorded struct {
		Texts   []string
		Digests map[string]string
	}
	must(t, json.Unmarshal(testdata(t, "recorded.json"), &recorded))
	found := 0
	for name, digests := range recorded.Digests {
		file, err := os.ReadFile(filepath.Join(dir, name, "tokenizer.json"))
		if err != nil {
			continue
		}
		found++
		t.Run(name, func(t *testing.T) {
			tok, err := New(file, nil)
			must(t, err)
			wrong := 0
			for i, want := range strings.Fields(digests) {
				if got := digest(tok, recorded.Texts[i]); got != want {
					if wrong++; wrong <= maxShown {
						t.Errorf("%+q: its digest differs from the reference", recorded.Texts[i])
					}
				}
			}
			t.Logf("%d texts, %d wrong", len(recorded.Texts), wrong)
		})
	}
	if found == 0 {
		t.Fatalf("%s has none of the vocabularies", dir)
	}
}

// digest hashes the ids, the ids with special tokens, the offsets in characters, and the decoded texts.
func digest(tok *Tokenizer, text string) string {
	numbers := func(ids []int32) string {
		return strings.Trim(strings.ReplaceAll(fmt.Sprint(ids), " ", ","), "[]")
	}
	ids, spans := tok.EncodeOffsets(text, false)
	special := tok.Encode(text, true)
	var at []string
	for _, s := range inRunes(text, spans) {
		at = append(at, fmt.Sprintf("%d-%d", s[0], s[1]))
	}
	all := []string{
		numbers(ids), numbers(special), strings.Join(at, ","), tok.Decode(special, false), tok.Decode(special, true),
	}
	sum := sha256.Sum256([]byte(strings.Join(all, "|")))
	return hex.EncodeToString(sum[:4])
}
