package tokenizer

import (
	"encoding/json"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"github.com/goart-dev/art/internal/tokentest"
)

func TestEncode_RoundTrip(t *testing.T) {
	tok, rng := small(t), seeded(t)
	for range 2000 {
		checkRoundTrip(t, tok, randomText(rng))
	}
}

// checkRoundTrip holds for files without a normalizer.
func checkRoundTrip(t *testing.T, tok *Tokenizer, s string) {
	t.Helper()
	for name, ids := range map[string][]int32{"Encode": tok.Encode(s, true), "EncodeOrdinary": tok.EncodeOrdinary(s)} {
		if got := tok.Decode(ids, false); got != lossy([]byte(s)) {
			t.Fatalf("%q comes back from %s as %q", s, name, got)
		}
	}
	for _, id := range tok.EncodeOrdinary(s) {
		if tok.IsSpecial(id) {
			t.Fatalf("EncodeOrdinary made special token %d of %q", id, s)
		}
	}
}

func FuzzEncode(f *testing.F) {
	tok := small(f)
	for _, s := range tokentest.Pieces {
		f.Add(s)
	}
	f.Add("\xff\xe3\x81")
	f.Fuzz(func(t *testing.T, s string) { checkRoundTrip(t, tok, s) })
}

// TestEncode_NormalizedRoundTrip is the round trip where a normalizer may change the text once.
func TestEncode_NormalizedRoundTrip(t *testing.T) {
	tok, err := New(patched(t, map[string]json.RawMessage{"normalizer": json.RawMessage(`{"type": "NFC"}`)}), nil)
	must(t, err)
	rng := seeded(t)
	for range 2000 {
		s := randomText(rng)
		if got := tok.Decode(tok.EncodeOrdinary(s), false); got != nfc(s) {
			t.Fatalf("%q comes back as %q", s, got)
		}
	}
}

// TestEncode_SpecialOutOfReach: a token that merges could make is not made of ordinary text once it is special.
func TestEncode_SpecialOutOfReach(t *testing.T) {
	added, err := json.Marshal([]addedToken{{ID: 266, Content: spelling(t, small(t), 266), Special: true}})
	must(t, err)
	for _, ignoreMerges := range []string{"true", "false"} {
		tok, err := New(patched(t, map[string]json.RawMessage{
			"added_tokens": added,
			"model":        json.RawMessage(`{"ignore_merges": ` + ignoreMerges + `}`),
		}), nil)
		must(t, err)
		text := string(tok.TokenBytes(266))
		if ids := tok.Encode(text, false); !slices.Equal(ids, []int32{266}) {
			t.Errorf("Encode(%q) = %v, want 266", text, ids)
		}
		if ids := tok.EncodeOrdinary(text); slices.Contains(ids, 266) {
			t.Errorf("EncodeOrdinary(%q) = %v", text, ids)
		}
	}
}

func spelling(t *testing.T, tok *Tokenizer, id int32) string {
	t.Helper()
	for s, i := range tok.ids {
		if i == id {
			return s
		}
	}
	t.Fatalf("no token has id %d", id)
	return ""
}

func TestEncode_Concurrent(t *testing.T) {
	tok := small(t)
	text := string(testdata(t, "corpus.txt"))
	want := small(t).Encode(text, false)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 20 {
				if !slices.Equal(tok.Encode(text, false), want) {
					t.Error("ids differ between goroutines")
				}
			}
		})
	}
	wg.Wait()
}

// TestJoin holds the heap against the simple loop.
func TestJoin(t *testing.T) {
	m, rng := small(t).model.(*bpe), seeded(t)
	for range 2000 {
		word := randomWord(rng, 1+rng.IntN(longWord-1))
		short, ok := m.appendShort(nil, word)
		var long []int32
		for _, tok := range m.appendTokens(new(scratch), nil, word) {
			long = append(long, tok.id)
		}
		if !ok || !slices.Equal(short, long) {
			t.Fatalf("%q: %v by looking at all pairs, %v by the heap", word, short, long)
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

// nfc is form C of a text.
func nfc(s string) string { return formC(newPiece(s, false)).text }

func TestNFC_FastAgainstSlow(t *testing.T) {
	rng := seeded(t)
	for range 5000 {
		s := randomMarks(rng)
		slow := newPiece(s, true).rewrite(decomposition{}.form(s, true))
		if fast := formC(newPiece(s, true)); fast.text != slow.text || nfc(s) != slow.text || !slices.Equal(fast.origins, slow.origins) {
			t.Fatalf("%+q: %+q, %+q by definition", s, fast.text, slow.text)
		}
		if once := nfc(s); nfc(once) != once {
			t.Fatalf("%+q: %+q changes when it is normalized again", s, once)
		}
	}
}

func randomMarks(rng *rand.Rand) string {
	var b strings.Builder
	for range 1 + rng.IntN(4) {
		b.WriteRune([]rune("aoÅe\u1100\uac00\u09c7 ")[rng.IntN(8)])
		for range rng.IntN(4) * rng.IntN(15) {
			b.WriteRune(0x300 + rune(rng.IntN(0x50)))
		}
	}
	return b.String()
}

func TestNFC_LongRunsOfMarks(t *testing.T) {
	for in, want := range map[string]string{
		"a" + strings.Repeat("\u0301", 40):            "á" + strings.Repeat("\u0301", 39),
		"a" + strings.Repeat("\u0301\u0323", 20):      "ạ" + strings.Repeat("\u0323", 19) + strings.Repeat("\u0301", 20),
		"e" + strings.Repeat("\u0316", 31) + "\u034f": "e" + strings.Repeat("\u0316", 31) + "\u034f",
		"o\u09be\u0309": "o\u09be\u0309", // x/text composes across U+09BE
		"a\u1ac2\u0323": "a\u1ac2\u0323", // a mark of Unicode 14
		"\u1100\u1161\u11a8" + strings.Repeat("\u0323", 33): "각" + strings.Repeat("\u0323", 33),
	} {
		if got := nfc(in); got != want {
			t.Errorf("%+q becomes %+q, want %+q", in, got, want)
		}
	}
}

// lossy returns b as valid UTF-8, with U+FFFD for what is left at its end too.
func lossy(b []byte) string {
	text, rest := appendValid(make([]byte, 0, len(b)), b)
	if len(rest) > 0 {
		text = utf8.AppendRune(text, utf8.RuneError)
	}
	return string(text)
}

func TestLossy(t *testing.T) {
	for in, want := range map[string]string{
		"":                         "",
		"aé日😀":                     "aé日😀",
		"\xff":                     "\uFFFD",
		"\xe3\x81":                 "\uFFFD",
		"\xe3\x81a":                "\uFFFDa",
		"\xe3\x81\xe3\x81\x82":     "\uFFFDあ",
		"\xe0\x80\x80":             "\uFFFD\uFFFD\uFFFD",
		"\xf0\x9f\x98\xf0\x9f\x98": "\uFFFD\uFFFD",
		"\xed\xa0\x80":             "\uFFFD\uFFFD\uFFFD",
		"\uFFFD":                   "\uFFFD",
	} {
		if got := lossy([]byte(in)); got != want || !utf8.ValidString(got) {
			t.Errorf("%+q becomes %+q, want %+q", in, got, want)
		}
	}
}

func BenchmarkEncode(b *testing.B) {
	tok := small(b)
	text := string(testdata(b, "corpus.txt"))
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		tok.EncodeOrdinary(text)
	}
}

// BenchmarkEncode_LongWord merges one word of 64 KiB.
func BenchmarkEncode_LongWord(b *testing.B) {
	tok := small(b)
	text := strings.Repeat("thereward", 1<<16/9)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		tok.EncodeOrdinary(text)
	}
}

func BenchmarkNew(b *testing.B) {
	file := testdata(b, "tokenizer.json")
	for b.Loop() {
		if _, err := New(file, nil); err != nil {
			b.Fatal(err)
		}
	}
}

// FuzzNew replaces one part of a file that is right, or all of it (part "").
func FuzzNew(f *testing.F) {
	for part, value := range map[string]string{
		"":               `{"version": "1.0", "model": {"vocab": {}, "merges": ["a b"]}}`,
		"added_tokens":   `[{"id": 600, "content": "<x>", "lstrip": true, "rstrip": true, "single_word": true, "normalized": true}]`,
		"normalizer":     `{"type": "Sequence", "normalizers": [{"type": "NFC"}]}`,
		"pre_tokenizer":  `{"type": "Sequence", "pretokenizers": [{"type": "Digits", "individual_digits": true}, {"type": "ByteLevel"}]}`,
		"post_processor": `{"type": "TemplateProcessing", "single": [{"Sequence": {"id": "A", "type_id": 0}}], "pair": [], "special_tokens": {}}`,
		"decoder":        `{"type": "ByteLevel"}`,
		"model":          `{"ignore_merges": true, "merges": ["a n", ["t", "h"]]}`,
		"model ":         `{"type": "Unigram", "unk_id": 0, "vocab": [["<unk>", 0], ["a", -1.5], ["<0x41>", 0]], "byte_fallback": true}`,
	} {
		f.Add(part, []byte(value), []byte(`{"eos_token": "<|im_end|>"}`))
	}
	f.Add("", []byte(`{"model": {"unk_id": 0, "vocab": [["<unk>", 0], ["a", -1.5e-7], ["T", -20.000000000000000000001]]}}`), []byte(`{}`))
	f.Fuzz(func(t *testing.T, part string, value, config []byte) {
		if part != "" {
			var object map[string]json.RawMessage
			if !json.Valid(value) || strings.TrimSpace(part) == "model" && json.Unmarshal(value, &object) != nil {
				return
			}
			part = strings.TrimSpace(part)
			value = patched(t, map[string]json.RawMessage{part: value})
		}
		tok, err := New(value, config)
		if err != nil {
			return
		}
		exercise(t, tok, "The 1st café\n\n 日本 <x> 😀")
	})
}
