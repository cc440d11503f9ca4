package grammar

import (
	"math/rand/v2"
	"net/mail"
	"net/netip"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

// randomPattern returns an expression over a few characters.
func randomPattern(rng *rand.Rand, depth int) string {
	atoms := []string{
		"a", "b", "é", ".", "[ab]", "[^a]", `\d`, `\W`, "^", "$", "(?i:É)", `\x{e9}`, "", "[a-é]", `\.`, "(?s:.)",
	}
	if depth == 0 {
		return atoms[rng.IntN(len(atoms))]
	}
	x, y := randomPattern(rng, depth-1), randomPattern(rng, depth-1)
	switch rng.IntN(4) {
	case 0:
		return "(?:" + x + ")" + []string{"*", "+", "?", "{2}", "{1,3}", "{2,}", "*?"}[rng.IntN(7)]
	case 1:
		return "(" + x + "|" + y + ")"
	}
	return x + y
}

func TestRegex_MatchesAsGo(t *testing.T) {
	v := byteVocabulary("ab", "é\n", "\xc3", "a1", "É.")
	alphabet := []rune("abéÉ1.\n世")
	matched := 0
	for seed := range uint64(150) {
		rng := newRand(t, seed)
		source := randomPattern(rng, 1+rng.IntN(4))
		whole, some := regexp.MustCompile(`^(?:`+source+`)$`), regexp.MustCompile(source)
		c, err := Compile(Regex(source), v, nil)
		search, err2 := Compile(JSONSchema([]byte(`{"type":"string","pattern":`+quoteJSON(source)+`}`), nil), v, nil)
		for range 40 {
			var text string
			for range rng.IntN(6) {
				text += string(alphabet[rng.IntN(len(alphabet))])
			}
			want := whole.MatchString(text)
			if err == nil && matches(t, c, text, rng) != want || err != nil && want {
				t.Fatalf("%q of %q: want %v; compile error %v", text, source, want, err)
			}
			wantSome := some.MatchString(text)
			if err2 == nil && matches(t, search, quoteJSON(text), rng) != wantSome || err2 != nil && wantSome {
				t.Fatalf("search %q in %q: want %v; compile error %v", source, text, wantSome, err2)
			}
			if want {
				matched++
			}
		}
	}
	if matched < 250 {
		t.Errorf("only %d texts matched", matched)
	}
}

func TestRegex_Refuses(t *testing.T) {
	v := byteVocabulary()
	for source, want := range map[string]string{
		`a(?!b)`: "Go's package regexp", `(a)\1`: "escape", `a\b`: "WordBoundary", `(?m)^a`: "BeginLine",
		`a{2000}`: "repeat", `(a|b)*a(a|b){40}(a|b){40}`: "limit", `[^\x00-\x{10FFFF}]`: "no text", `a^b`: "no text",
		`\ud83d\ude00`: "surrogate",
	} {
		if _, err := Compile(Regex(source), v, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", source, err, want)
		}
	}
	rng := newRand(t, 1)
	if c := mustCompile(t, Regex(`\u00e9\\u0061[\u{1F600}]\/`), v); !matches(t, c, `é\u0061😀/`, rng) {
		t.Error("escapes of ECMAScript are not understood")
	}
}

// formatChecks are parsers of others for each format.
var formatChecks = map[string]func(string) bool{
	"date":      func(s string) bool { _, err := time.Parse(time.DateOnly, s); return err == nil },
	"time":      func(s string) bool { _, err := time.Parse(time.RFC3339, "2000-01-01T"+s); return err == nil },
	"date-time": func(s string) bool { _, err := time.Parse(time.RFC3339, s); return err == nil },
	"duration":  regexp.MustCompile(`^P(\d+W|(\d+Y)?(\d+M)?(\d+D)?(T(\d+H)?(\d+M)?(\d+S)?)?)$`).MatchString,
	"email": func(s string) bool {
		a, err := mail.ParseAddress(s)
		return err == nil && a.Address == s && len(s) < 320
	},
	"hostname": func(s string) bool { return len(s) <= 253 && !strings.Contains(s, "-.") && !strings.Contains(s, "..") },
	"ipv4":     func(s string) bool { a, err := netip.ParseAddr(s); return err == nil && a.Is4() },
	"ipv6":     func(s string) bool { a, err := netip.ParseAddr(s); return err == nil && a.Is6() },
	"uuid":     func(s string) bool { return len(s) == 36 && strings.Count(s, "-") == 4 },
	"uri":      func(s string) bool { u, err := url.Parse(s); return err == nil && u.IsAbs() },
}

func TestFormats_AreReadByOthers(t *testing.T) {
	v := byteVocabulary("-01", "2024-", "::", "29", ":0")
	for name := range formats {
		t.Run(name, func(t *testing.T) {
			rng := newRand(t, 1)
			c := mustCompile(t, JSONSchema([]byte(`{"type":"string","format":"`+name+`"}`), nil), v)
			for range 60 {
				text, done := walkMasks(t, c, rng, false)
				if text := strings.Trim(text, `"`); done && !formatChecks[name](text) {
					t.Errorf("%q is not a %s", text, name)
				}
			}
		})
	}
}

func TestFormats_AcceptUsualForms(t *testing.T) {
	v := byteVocabulary()
	rng := newRand(t, 1)
	for name, texts := range map[string][]string{
		"date":      {"2024-02-29", "2000-02-29", "1999-12-31"},
		"time":      {"23:59:59Z", "00:00:00.123456+05:30"},
		"date-time": {"2024-02-29T12:00:00Z", "1985-04-12T23:20:50.52-08:00"},
		"duration":  {"P3Y6M4DT12H30M5S", "PT36H", "P4W", "P1M", "PT1M"},
		"email":     {"ada@example.org", "a.b+c@sub.example.co.uk"},
		"hostname":  {"localhost", "a-b.example.org"},
		"ipv4":      {"127.0.0.1", "255.255.255.255"},
		"ipv6":      {"::", "::1", "2001:db8::8a2e:370:7334", "1:2:3:4:5:6:7:8", "fe80::"},
		"uuid":      {"123e4567-e89b-12d3-a456-426614174000"},
		"uri":       {"https://example.org/a/b?q=1#x", "http://localhost:8080", "urn:isbn"},
	} {
		c := mustCompile(t, JSONSchema([]byte(`{"format":"`+name+`"}`), nil), v)
		for _, text := range texts {
			if want := name != "uri" || text != "urn:isbn"; matches(t, c, `"`+text+`"`, rng) != want {
				t.Errorf("%s: %s: want %v", name, text, want)
			}
		}
	}
	c := mustCompile(t, JSONSchema([]byte(`{"format":"date"}`), nil), v)
	for _, text := range []string{"2023-02-29", "1900-02-29", "2024-13-01", "2024-04-31", "24-01-01"} {
		if matches(t, c, `"`+text+`"`, rng) {
			t.Errorf("%s is accepted", text)
		}
	}
}

func TestText_HoldsNoStop(t *testing.T) {
	v := byteVocabulary("<tool", "_call>", "aba", "\xf0\x9f")
	for seed := range uint64(40) {
		rng := newRand(t, seed)
		stops := [][]string{{"<tool_call>"}, {"aba", "bab"}, {"é", "a"}, {"aa", "aaaa", "ba"}, nil}[seed%5]
		c := mustCompile(t, Text(stops...), v)
		for range 100 {
			var text string
			for range rng.IntN(8) {
				text += []string{"a", "b", "é", "<tool", "_call>", "<", "\xc3", "😀"}[rng.IntN(8)]
			}
			want := utf8.ValidString(text)
			for _, stop := range stops {
				want = want && !strings.Contains(text, stop)
			}
			if got := matches(t, c, text, rng); got != want {
				t.Fatalf("%q without %q: %v, want %v", text, stops, got, want)
			}
		}
	}
}
