package onig

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

func fancy(t testing.TB, pattern string) *Regexp {
	t.Helper()
	re, err := CompileFancy(pattern)
	if err != nil {
		t.Fatal(err)
	}
	return re
}

// fancyCases are patterns with the words into which tiktoken splits texts.
type fancyCases struct {
	Name, Pattern string
	Cases         [][]string
}

func readFancy(t testing.TB) []fancyCases {
	t.Helper()
	data, err := os.ReadFile("testdata/fancy.json")
	if err != nil {
		t.Fatal(err)
	}
	var groups []fancyCases
	if err := json.Unmarshal(data, &groups); err != nil {
		t.Fatal(err)
	}
	return groups
}

// TestCompileFancy_Golden: "1415" is two words by the pattern of cl100k_base, whose "{1,3}+" is possessive, but in
// Oniguruma a repetition of a repetition. testdata/make_fancy.py has the command that made the golden file.
func TestCompileFancy_Golden(t *testing.T) {
	for _, g := range readFancy(t) {
		re := fancy(t, g.Pattern)
		for _, want := range g.Cases {
			if got := matches(re, strings.Join(want, "")); !slices.Equal(got, want) {
				t.Errorf("%s: got %q\nwant %q", g.Name, got, want)
			}
		}
	}
}

// TestCompileFancy: the expected results are those of fancy-regex 0.19.
func TestCompileFancy(t *testing.T) {
	for _, c := range []struct{ pattern, text, want string }{
		{`a{2}?`, "aaa", "aa"},
		{`a{,2}b`, "aaab", "aab"},
		{`\w+`, "a\u200db c", "a\u200db|c"},
		{`(?m)$\n|^b`, "a\nb", "\n|b"},
		{`a$|b$`, "a\nb", "b"},
		{`.(?s).`, "a\n", "a\n"},
		{`a(?i)b|c`, "aB C AB", "aB|C"},
		{`(?i:ss)`, "ß SS ſs", "SS|ſs"},
		{`\xe9`, "é", "é"},
		{`(?i:\p{Greek}+)`, "µ\u0345", "µ\u0345"},
	} {
		if got := strings.Join(matches(fancy(t, c.pattern), c.text), "|"); got != c.want {
			t.Errorf("%s on %q: %q, want %q", c.pattern, c.text, got, c.want)
		}
	}
}

func TestCompileFancy_NamesWhatIsNotSupported(t *testing.T) {
	for pattern, want := range map[string]string{
		`a{1,2}{3}`: "two quantifiers", `a++?`: "two quantifiers", `a{x`: `\{`, `a{,}`: `\{`, `(?=a)*`: "cannot be repeated", `\b{start}`: `\{`, `a(?#x){2}`: `\{`,
		`(?x: a)`: `'x'`, `(?U)a`: `'U'`, `(a(?i)b)c`: "inside a group", `[[:alpha:]]`: "[:", `[a-z--b]`: "--", `[a~~b]`: "~~", `[\w-a]`: "range",
		`\Z`: `\Z`, `\R`: `\R`, `\<a`: `\<`, `\1`: `\1`, `\G`: `\G`, `(?i:\p{Lu})`: "Lu", `\p{Word}`: `\w`, `(a?)*`: "no text", `(?~a)`: "'~'",
	} {
		if _, err := CompileFancy(pattern); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v does not say %q", pattern, err, want)
		}
	}
}

// FuzzCompileFancy: any pattern is an error, or finds matches in order in any text.
func FuzzCompileFancy(f *testing.F) {
	for _, g := range readFancy(f) {
		f.Add(g.Pattern, "it's 1415 a]b\r\n \xff")
	}
	f.Fuzz(func(t *testing.T, pattern, text string) {
		if len(pattern) > 200 || len(text) > 200 {
			return
		}
		re, err := CompileFancy(pattern)
		if err != nil {
			return
		}
		last := 0
		re.Each(text, func(start, end int) bool {
			if start < last || end < start || end > len(text) || utf8.ValidString(text) && !utf8.ValidString(text[start:end]) {
				t.Fatalf("pattern %q, text %q: match from %d to %d, behind %d", pattern, text, start, end, last)
			}
			last = end
			return true
		})
	})
}
