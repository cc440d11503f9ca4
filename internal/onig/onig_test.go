package onig

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/dlclark/regexp2/v2"
)

// patterns of released tokenizers.
var patterns = []string{
	`'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`,
	`(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`,
	`(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`,
	`[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+`,
	`[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_` + "`" + `{|}~][A-Za-z]+|[^` + "\r\n" + `\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[` + "\r\n" + `]*|\s*[` + "\r\n" + `]+|\s+(?!\S)|\s+`,
	`[0-9][0-9][0-9]`, `\d{1,3}(?=(?:\d{3})*(?!\d))`, `(a|ab)(c|bcd)*?d?`, `(?<=a)b+|(?<!b)a`, `(?>a+|ab)b`, `x*?y|[^xy]{2,3}`, `(a*)*b|c`, `a++b|a*+c`,
}

func compiled(t testing.TB, pattern string) *Regexp {
	t.Helper()
	re, err := Compile(pattern)
	if err != nil {
		t.Fatal(err)
	}
	return re
}

func matches(re *Regexp, text string) []string {
	var out []string
	re.Each(text, func(start, end int) bool {
		out = append(out, text[start:end])
		return true
	})
	return out
}

// peer matches with another backtracking engine, whose dialect agrees on the patterns of these tests.
func peer(t testing.TB, pattern, text string) []string {
	t.Helper()
	re, err := regexp2.Compile(pattern)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	m, err := re.FindStringMatch(text)
	end := -1
	for m != nil && err == nil {
		if m.RuneLength > 0 || m.RuneIndex != end {
			out = append(out, m.String())
		}
		end = m.RuneIndex + m.RuneLength
		m, err = re.FindNextMatch(m)
	}
	if err != nil {
		t.Fatal(err)
	}
	return out
}

var pieces = []string{"the", " agent", "'s", "'LL", "12", "1234567", " ", "  ", "\n", "\r\n", "\t", "é", "e\u0301",
	"日本", "😀", "ſ", "\u00a0", "a", "b", "ab", "bcd",
	"aab", "xy", "xxx", "HTTPServer", "/", "!", "...", "ꟃ", "½", "ǅ", "ʰ", "\u2028", "\u0085", "c", "_"}

func TestEach_EqualsPeer(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	for range 3000 {
		pattern := patterns[rng.IntN(len(patterns))]
		var text strings.Builder
		for range rng.IntN(10) {
			text.WriteString(pieces[rng.IntN(len(pieces))])
		}
		checkPeer(t, pattern, text.String())
	}
}

func checkPeer(t *testing.T, pattern, text string) {
	t.Helper()
	if got, want := matches(compiled(t, pattern), text), peer(t, pattern, text); !slices.Equal(got, want) {
		t.Fatalf("pattern %q, text %+q:\n got %q\nwant %q", pattern, text, got, want)
	}
}

// TestEach_Oniguruma: syntax that other engines lack or treat differently; the results are those of tokenizers 0.23.3.
func TestEach_Oniguruma(t *testing.T) {
	for _, c := range []struct{ pattern, text, want string }{
		{`(?i:'s)`, "'s 'S 'ſ", "'s|'S|'ſ"},
		{`[\p{L}&&[^\p{Han}]]+`, "ab中c", "ab|c"},
		{`[[a-c][x]]+`, "abxd", "abx"},
		{`[^\S\n]+`, "a \n\tb", " |\t"},
		{`[[:alpha:]]+`, "aé1", "aé"},
		{`\h+`, "xfFg", "fF"},
		{`\p{^L}+`, "a12b", "12"},
		{`\x{1F600}|\u00e9`, "é😀", "é|😀"},
		{`^.`, "ab\ncd", "a|c"},
		{`.$`, "ab\ncd", "b|d"},
		{`(?m).+`, "a\nb", "a\nb"},
		{`(?x) a  b # comment`, "ab", "ab"},
		{`a(?i)b|c`, "aB aC", "aB|aC"},
		{`a{,2}b`, "aaab", "aab"},
		{`a{2}+`, "aaaaa", "aaaa"},
		{`a{x`, "a{x", "a{x"},
		{`\bfoo\b`, "foo food", "foo"},
		{`\R`, "a\r\nb\n", "\r\n|\n"},
		{`(?<name>a)b`, "ab", "ab"},
		{`\A.|.\z`, "abc", "a|c"},
		{`\p{Lu}`, "\u1c89", "\u1c89"}, // new in Unicode 16
		{`[]a]+`, "]a", "]a"},
		{`[a-]+`, "a-b", "a-"},
		{`[^\w]`, "a!_", "!"},
		{`\d`, "٣", "٣"},
	} {
		if got := strings.Join(matches(compiled(t, c.pattern), c.text), "|"); got != c.want {
			t.Errorf("%s on %q: %q, want %q", c.pattern, c.text, got, c.want)
		}
	}
}

func TestCompile_NamesWhatIsNotSupported(t *testing.T) {
	for pattern, want := range map[string]string{
		`(a)\1`: `\1`, `\k<a>`: `\k`, `\X`: `\X`, `\G`: `\G`, `\K`: `\K`, `(?P<a>b)`: `'P'`, `\p{Greekish}`: "Greekish", `[[:lower:]]`: "lower",
		`(a`: "no end", `a)`: "opening", `[a`: "no end", `a{2,1}`: "order", `*a`: "nothing", `(?i:ss)`: "ss", `(?i:\p{Lu})`: "Lu", `a\`: "backslash",
		`(?<=a+)b`: "fixed", `[z-a]`: "range", `\xZZ`: "not a character", `a{1001}`: "1000", `((a{1000}){1000}){1000}`: "instructions",
		`a{2}?`: "engines differ", "\xff": "UTF-8", `(?<a`: "no end", `\p{`: "no name", strings.Repeat("(", 200): "deeper", strings.Repeat("[", 200): "deeper", `^*`: "anchor",
	} {
		if _, err := Compile(pattern); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v does not say %q", pattern, err, want)
		}
	}
}

// randomPattern returns nested constructs that backtrack.
func randomPattern(rng *rand.Rand, depth int) string {
	if depth == 0 {
		return []string{"a", "b", "[ab]", ".", "(?!b)", "(?<=a)", "$"}[rng.IntN(7)]
	}
	sub := func() string { return randomPattern(rng, depth-1) }
	repeat := func() string {
		return []string{"*", "+", "?", "{2}", "{1,3}", "*?", "+?", "{1,2}?", "*+", "++"}[rng.IntN(10)]
	}
	switch rng.IntN(8) {
	case 0, 1:
		return sub() + sub()
	case 2:
		return "(?:" + sub() + "|" + sub() + ")"
	case 3:
		return "(?=" + sub() + ")"
	case 4:
		return "(?>" + sub() + ")"
	case 5:
		return []string{"a", "b", "[ab]"}[rng.IntN(3)] + repeat()
	}
	return "(?:" + sub() + ")" + repeat()
}

// TestEach_Remembers: a search that memoizes failures finds the same matches as one that does not.
func TestEach_Remembers(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	compared := 0
	for range 20_000 {
		pattern := randomPattern(rng, 4)
		forgetful, err := Compile(pattern)
		if err != nil || forgetful.guarded { // these always memoize, or they would not terminate
			continue
		}
		remembering := *forgetful
		remembering.guarded = true
		for range 5 {
			text := strings.Repeat("ab", rng.IntN(3)) + strings.Repeat("a", rng.IntN(6)) +
				[]string{"", "b", "bab", "c", "ca"}[rng.IntN(5)]
			if got, want := matches(&remembering, text), matches(forgetful, text); !slices.Equal(got, want) {
				t.Fatalf("pattern %q, text %q:\n got %q\nwant %q", pattern, text, got, want)
			}
			compared++
		}
	}
	if compared < 10_000 {
		t.Errorf("only %d texts were compared", compared)
	}
}

// TestEach_Bounded: patterns that take exponential time elsewhere.
func TestEach_Bounded(t *testing.T) {
	text := strings.Repeat("a", 100_000) + "!"
	began := time.Now()
	for _, pattern := range []string{`(a+)+$`, `(a*)*b`, `(a|aa)+$`, `(?=(a+)+b)a`, `(?>(a+)+b)|c`, `(.*)*x`, `a*a*a*b`,
		`a++b`, `a*?b`, `(a+b?)+c`, `(?=a*b)a`} {
		matches(compiled(t, pattern), text)
	}
	if d := time.Since(began); d > time.Minute {
		t.Errorf("%v", d) // linear time takes about a second, quadratic time hours
	}
}

// TestCased: the list has all characters that equal others in case-insensitive matching.
func TestCased(t *testing.T) {
	for r := range unicode.MaxRune + 1 {
		if _, listed := slices.BinarySearch(cased(), r); listed != (unicode.SimpleFold(r) != r) {
			t.Errorf("%U: listed %v", r, listed)
		}
	}
}

func TestClass(t *testing.T) {
	letters := Class(`[\p{L}_]`)
	if !letters('é') || !letters('_') || letters('1') {
		t.Error("wrong members")
	}
}

// FuzzEach: any pattern is an error, or finds matches in order in any text.
func FuzzEach(f *testing.F) {
	for _, p := range patterns {
		f.Add(p, "it's 1234 a]b\r\n \xff")
	}
	f.Add(`(?i)[a-z&&[^aeiou]]+|\R|(?<=x)\b.{2,3}?`, "xAbcé")
	f.Fuzz(func(t *testing.T, pattern, text string) {
		if len(pattern) > 200 || len(text) > 200 {
			return
		}
		re, err := Compile(pattern)
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

// FuzzEach_Peer: the patterns of released tokenizers, on any text.
func FuzzEach_Peer(f *testing.F) {
	for i := range patterns {
		f.Add(i, strings.Join(pieces, ""))
	}
	f.Fuzz(func(t *testing.T, i int, text string) {
		if i < 0 || len(text) > 1000 || !utf8.ValidString(text) || strings.ContainsFunc(text, young) {
			return
		}
		checkPeer(t, patterns[i%len(patterns)], text)
	})
}

// young reports whether the peer, which has Go's tables, lacks the category of a character.
func young(r rune) bool {
	return r > 0x2FFFF || 0x1C80 <= r && r < 0x1C90 || 0xA7C0 <= r && r < 0xA800 || r > 0xFFFF
}

func BenchmarkEach(b *testing.B) {
	text := strings.Repeat("The agent's board has 1234 fields, and it wasn't HTTPServer's fault!\n\n  日本語 é ", 200)
	for i, p := range patterns[:5] {
		re := compiled(b, p)
		b.Run([]string{"gpt2", "qwen2", "llama3", "o200k", "deepseek"}[i], func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				re.Each(text, func(int, int) bool { return true })
			}
		})
	}
}
