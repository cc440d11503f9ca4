package tokenizer

import (
	"encoding/json"
	"maps"
	"slices"
	"testing"
)

// TestDecode_NormalizedTokens compares how added tokens that are searched in normalized text are decoded with Hugging
// Face's tokenizers, for two files and for random changes to them. testdata/make_decoding.py has the command that made
// random.json.
func TestDecode_NormalizedTokens(t *testing.T) {
	var cases []struct {
		Dir, Text    string
		Special      bool
		IDs          []int32
		Dec, DecSkip string
	}
	must(t, json.Unmarshal(testdata(t, "decoding/cases.json"), &cases))
	toks := map[string]*Tokenizer{}
	for _, c := range cases {
		if toks[c.Dir] == nil {
			tok, err := New(testdata(t, "decoding/"+c.Dir+"/tokenizer.json"), nil)
			must(t, err)
			toks[c.Dir] = tok
		}
		if ids := toks[c.Dir].Encode(c.Text, c.Special); !slices.Equal(ids, c.IDs) {
			t.Errorf("%s: %q: got %v, want %v", c.Dir, c.Text, ids, c.IDs)
		}
		checkDecoded(t, c.Dir, toks[c.Dir], brokenCase{c.IDs, c.Dec, c.DecSkip})
	}
	var groups []struct {
		Name, Base string
		Patch      map[string]json.RawMessage
		Cases      []brokenCase
	}
	must(t, json.Unmarshal(testdata(t, "decoding/random.json"), &groups))
	if len(cases) < 20 || len(groups) < 40 {
		t.Fatalf("%d cases and %d groups only", len(cases), len(groups))
	}
	for _, g := range groups {
		var file map[string]json.RawMessage
		must(t, json.Unmarshal(testdata(t, "decoding/"+g.Base+"/tokenizer.json"), &file))
		maps.Copy(file, g.Patch)
		data, err := json.Marshal(file)
		must(t, err)
		tok, err := New(data, nil)
		if err != nil {
			t.Errorf("%s: %v", g.Name, err)
			continue
		}
		for _, c := range g.Cases {
			checkDecoded(t, g.Name, tok, c)
		}
	}
}

// checkDecoded compares what ids decode to, as a whole and streamed.
func checkDecoded(t *testing.T, name string, tok *Tokenizer, c brokenCase) {
	t.Helper()
	for skip, want := range map[bool]string{false: c.Decoded, true: c.DecodedSkip} {
		stream, streamed := tok.Stream(skip), ""
		for _, id := range c.IDs {
			delta, _ := stream.Add(id)
			streamed += delta
		}
		if got := tok.Decode(c.IDs, skip); got != want || streamed+stream.Flush() != want {
			t.Errorf("%s: %v, without special tokens %v:\n   got %+q\nstream %+q\n  want %+q",
				name, c.IDs, skip, got, streamed, want)
		}
	}
}
