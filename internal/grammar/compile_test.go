package grammar

import (
	"errors"
	"strings"
	"sync"
	"testing"
)

func TestCompile_NamesLimits(t *testing.T) {
	v := byteVocabulary()
	for name, tt := range map[string]struct {
		g      Grammar
		limits Limits
	}{
		"States":      {Repeat(Repeat(Literal("ab"), 900, 900), 900, 900), Limits{}},
		"Work":        {Regex(`(a|b)*a(a|b){16}`), Limits{Work: 100_000}},
		"Repeat":      {Repeat(Literal("a"), 0, 10_000), Limits{}},
		"Rules":       {JSONSchema([]byte(personSchema), nil), Limits{Rules: 5}},
		"Depth":       {JSONSchema([]byte(personSchema), nil), Limits{Depth: 3}},
		"SchemaBytes": {JSONSchema([]byte(personSchema), nil), Limits{SchemaBytes: 100}},
	} {
		_, err := Compile(tt.g, v, &tt.limits)
		var limit *LimitError
		if !errors.As(err, &limit) || limit.Limit != name || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

// A product of alternatives grows with their number's power.
func TestCompile_BoundsCombinedAlternatives(t *testing.T) {
	var groups []string
	for i := range 40 {
		name := string(rune('a'+i%26)) + string(rune('a'+i/26))
		groups = append(groups, `{"anyOf":[{"required":["`+name+`"]},{"required":["x`+name+`"]}]}`)
	}
	schema := `{"type":"object","allOf":[` + strings.Join(groups, ",") + `]}`
	_, err := Compile(JSONSchema([]byte(schema), nil), byteVocabulary(), nil)
	var limit *LimitError
	if !errors.As(err, &limit) {
		t.Errorf("error %v", err)
	}
}

func TestCompile_RefusesBadElements(t *testing.T) {
	v := byteVocabulary()
	for want, g := range map[string]Grammar{
		"outside the vocabulary": Sequence(Literal("a"), Token(10_000)),
		"ends the sequence":      Token(v.end[0]),
		"is not UTF-8":           Choice("a", "\xff"),
		"must be UTF-8":          Text(""),
		"cannot repeat":          Repeat(Literal("a"), 3, 2),
		"no text is allowed":     Alternation(),
		"unknown Whitespace":     JSONObject(&JSONOptions{Whitespace: 7}),
	} {
		if _, err := Compile(g, v, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
	for want, tt := range map[string]struct {
		tokens [][]byte
		end    []int32
	}{
		"needs an end":           {},
		"outside the vocabulary": {[][]byte{nil}, []int32{1}},
		"has 70000 bytes":        {[][]byte{make([]byte, 70_000), nil}, []int32{1}},
	} {
		if _, err := NewVocabulary(tt.tokens, tt.end); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("vocabulary: error %v, want %q", err, want)
		}
	}
}

// A token with text may be an element of its own as well; then both ways to read it go on.
func TestToken_WithTextIsReadBothWays(t *testing.T) {
	v := byteVocabulary("<tool_call>")
	const id = 256
	c := mustCompile(t, Alternation(Sequence(Token(id), Literal("x")), Sequence(Literal("<tool_call>"), Literal("y"))), v)
	for _, after := range []int32{'x', 'y'} {
		m := c.Matcher()
		checkMask(t, m)
		if err := m.Accept(id); err != nil {
			t.Fatal(err)
		}
		checkMask(t, m)
		if err := m.Accept(after); err != nil || !m.Finished() {
			t.Errorf("after %c: %v", after, err)
		}
	}
	if done, err := acceptBytes(c.Matcher(), "<tool_call>y"); err != nil || !done {
		t.Errorf("spelled out: %v", err)
	}
	if done, err := acceptBytes(c.Matcher(), "<tool_call>x"); err == nil || done {
		t.Error("the text was read as the token")
	}
}

// acceptBytes accepts a text byte by byte.
func acceptBytes(m *Matcher, text string) (bool, error) {
	for _, b := range []byte(text) {
		if err := m.Accept(int32(b)); err != nil {
			return false, err
		}
	}
	return m.Finished(), nil
}

func TestCache_KeepsTheMostRecent(t *testing.T) {
	v, other := byteVocabulary(), byteVocabulary()
	cache := NewCache(2, nil)
	get := func(g Grammar, v *Vocabulary) *Compiled {
		c, err := cache.Compile(g, v)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	a := get(Literal("a"), v)
	if get(Literal("a"), v) != a {
		t.Error("the same grammar was compiled again")
	}
	if get(Literal("a"), other) == a {
		t.Error("another vocabulary has the same masks")
	}
	get(Literal("a"), v) // the most recent
	get(Literal("b"), v) // evicts that of the other vocabulary
	if get(Literal("a"), v) != a || cache.Len() != 2 {
		t.Errorf("the recent one was evicted; %d are kept", cache.Len())
	}
	if _, err := cache.Compile(Alternation(), v); err == nil {
		t.Error("a grammar without texts was compiled")
	}
}

func TestCache_CompilesOnce(t *testing.T) {
	v, cache := byteVocabulary(), NewCache(4, nil)
	found := make([]*Compiled, 8)
	var wait sync.WaitGroup
	for i := range found {
		wait.Go(func() { found[i], _ = cache.Compile(JSONObject(nil), v) })
	}
	wait.Wait()
	for _, c := range found {
		if c == nil || c != found[0] {
			t.Fatal("the grammar was compiled more than once")
		}
	}
}

// Different grammars never share an entry of a cache.
func TestKey_TellsGrammarsApart(t *testing.T) {
	seen := map[string]int{}
	for i, g := range []Grammar{
		Literal("a"), Literal(`a","b`), Choice("a", "b"), Sequence(Literal("a"), Literal("b")), Sequence(Choice("a"), Literal("b")),
		Regex("a"), Text(), Text("a"), Text("a", "b"), Token(1), Repeat(Literal("a"), 1, 2), Repeat(Literal("a"), 12, -1),
		JSONObject(nil), JSONObject(&JSONOptions{Closed: true}), JSONObject(&JSONOptions{Whitespace: AnySpaces}),
		JSONSchema([]byte(`{}`), nil), JSONSchema([]byte(`{ }`), nil), JSONSchema([]byte(`{}`), &JSONOptions{Closed: true}),
	} {
		if before, ok := seen[g.key()]; ok {
			t.Errorf("grammars %d and %d have the key %s", before, i, g.key())
		}
		seen[g.key()] = i
	}
}
