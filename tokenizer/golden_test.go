package tokenizer

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

// TestGolden compares every supported setting with Hugging Face's tokenizers. testdata/make_golden.py has the command
// that made the file.
func TestGolden(t *testing.T) {
	var groups []struct {
		Name   string
		Patch  map[string]json.RawMessage
		Cases  []referenceCase
		Broken []brokenCase
	}
	must(t, json.Unmarshal(testdata(t, "golden.json"), &groups))
	for _, g := range groups {
		t.Run(g.Name, func(t *testing.T) {
			tok, err := New(patched(t, g.Patch), nil)
			must(t, err)
			runReference(t, tok, g.Cases)
			runBroken(t, tok, g.Broken)
		})
	}
	if len(groups) < 40 {
		t.Errorf("golden.json has %d groups only", len(groups))
	}
}

// TestGolden_Families does so for whole files of families without byte-level BPE, and of some with it.
// testdata/make_families.py has the command that made the file.
func TestGolden_Families(t *testing.T) {
	var groups []struct {
		Name   string
		File   json.RawMessage
		Cases  []referenceCase
		Broken []brokenCase
	}
	must(t, json.Unmarshal(testdata(t, "families.json"), &groups))
	for _, g := range groups {
		t.Run(g.Name, func(t *testing.T) {
			tok, err := New(g.File, nil)
			must(t, err)
			runReference(t, tok, g.Cases)
			runBroken(t, tok, g.Broken)
			for _, c := range g.Cases {
				exercise(t, tok, c.Text)
			}
		})
	}
	if len(groups) < 20 {
		t.Errorf("families.json has %d groups only", len(groups))
	}
}

// TestEncode_LongRuns: encoding is not quadratic for any text.
func TestEncode_LongRuns(t *testing.T) {
	var groups []struct {
		Name string
		File json.RawMessage
	}
	must(t, json.Unmarshal(testdata(t, "families.json"), &groups))
	for _, g := range groups {
		tok, err := New(g.File, nil)
		must(t, err)
		for _, char := range []string{"e", " ", "\u0301", "▁"} {
			ids := tok.Encode(strings.Repeat(char, 100_000), true)
			if len(ids) == 0 && !strings.Contains(g.Name, "drop") && char == "e" {
				t.Errorf("%s: no ids for a run of %q", g.Name, char)
			}
		}
	}
}

// TestEncode_InvalidUTF8: bytes that are not UTF-8 survive a round trip in models that work on bytes, or fall back to
// them.
func TestEncode_InvalidUTF8(t *testing.T) {
	text := "a\xff\xfe b\xe3\x81 c\xc0\xaf\xed\xa0\x80 <|im_end|>\xf0\x9f\x98"
	tok := small(t)
	encoded := map[string][]int32{"Encode": tok.Encode(text, true), "EncodeOrdinary": tok.EncodeOrdinary(text)}
	for name, ids := range encoded {
		if got := string(tok.DecodeBytes(ids, false)); got != text {
			t.Errorf("%s: %q comes back as %q", name, text, got)
		}
	}
	sp, err := FromSentencePiece(testdata(t, "sentencepiece/bpe-bytes.model"))
	must(t, err)
	if got := string(sp.DecodeBytes(sp.EncodeOrdinary(text), false)); got != " "+text {
		t.Errorf("%q comes back from bytes as %q", text, got)
	}
}

// exercise does everything once with a tokenizer, and checks what must hold for any: ids exist, offsets are in the
// text.
func exercise(t *testing.T, tok *Tokenizer, text string) {
	t.Helper()
	ids := tok.Encode(text, true)
	same, spans := tok.EncodeOffsets(text, true)
	if !slices.Equal(ids, same) {
		t.Fatalf("%q: %v, with offsets %v", text, ids, same)
	}
	for i, id := range ids {
		if !tok.valid(id) || spans[i].Start < 0 || spans[i].End > len(text) || spans[i].End < spans[i].Start {
			t.Fatalf("%q: id %d, span %v", text, id, spans[i])
		}
	}
	s, streamed := tok.Stream(true), ""
	for _, id := range ids {
		delta, _ := s.Add(id)
		streamed += delta
	}
	if streamed += s.Flush(); streamed != tok.Decode(ids, true) {
		t.Fatalf("%q streams to %q, decodes to %q", text, streamed, tok.Decode(ids, true))
	}
	tok.DecodeBytes(tok.EncodeOrdinary(text), false)
}
