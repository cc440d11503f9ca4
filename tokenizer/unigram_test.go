package tokenizer

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

// unigramGolden is unigram.json. testdata/make_unigram.py has the command that made it.
type unigramGolden struct {
	File    json.RawMessage
	Cases   []spCase
	Numbers [][2]string // the text, and the bits that the reference parses it to
}

func readUnigram(t testing.TB) unigramGolden {
	t.Helper()
	var g unigramGolden
	must(t, json.Unmarshal(testdata(t, "unigram.json"), &g))
	return g
}

// TestNew_UntypedUnigram: a file may lack "type", as T5's does; and ties are broken as in the reference, which parses
// many scores with an error of one bit.
func TestNew_UntypedUnigram(t *testing.T) {
	golden := readUnigram(t)
	tok, err := New(golden.File, nil)
	must(t, err)
	for _, c := range golden.Cases {
		if got := tok.Encode(c.Text, false); !slices.Equal(got, c.IDs) {
			t.Errorf("%+q:\n got %v\nwant %v", c.Text, got, c.IDs)
		}
	}
}

// TestNew_Untyped: the members decide which model it is, in the order in which the reference tries them.
func TestNew_Untyped(t *testing.T) {
	for model, want := range map[string]string{
		`{"vocab": {"a": 0, "b": 1, "ab": 2}, "merges": ["a b"]}`:              "",
		`{"vocab": [["<unk>", 0], ["a", -1]], "unk_id": 0}`:                    "",
		`{"vocab": [["<unk>", 0], ["a", -1]], "unk_id": 0, "merges": ["a b"]}`: "", // ignored by Unigram
		`{"vocab": {"a": 0}, "unk_token": "a"}`:                                "WordLevel",
		`{"vocab": [["<unk>", 0]], "unk_id": 1}`:                               "unk_id",
		`{"unk_id": 0}`:                                                        "type",
	} {
		_, err := New([]byte(`{"version": "1.0", "model": `+model+`}`), nil)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: error %v, want %q", model, err, want)
		}
	}
}
