package tokenizer

import (
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/goart-dev/art/internal/dev/tokentest"
)

func TestEncode_RoundTrip(t *testing.T) {
	tok, rng := small(t), seeded(t)
	for range 2000 {
		checkRoundTrip(t, tok, randomText(rng))
	}
}

// checkRoundTrip checks what holds for files without a normalizer.
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

// TestEncode_NormalizedRoundTrip is the round trip of normalized text.
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

// TestEncode_SpecialOutOfReach: ordinary text does not become a special token that merges could produce.
func TestEncode_SpecialOutOfReach(t *testing.T) {
	added, err := json.Marshal([]addedToken{{ID: 266, Content: tokenOf(t, small(t), 266), Special: true}})
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

func tokenOf(t *testing.T, tok *Tokenizer, id int32) string {
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
