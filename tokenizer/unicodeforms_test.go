package tokenizer

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// nfc is form C of a text.
func nfc(s string) string { return formC(newPiece(s, false)).text }

func TestNFC_FastAgainstSlow(t *testing.T) {
	rng := seeded(t)
	for range 5000 {
		s := randomMarks(rng)
		slow := newPiece(s, true).rewrite(decomposition{}.form(s, true))
		fast := formC(newPiece(s, true))
		if fast.text != slow.text || nfc(s) != slow.text || !slices.Equal(fast.origins, slow.origins) {
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
