package grammar

import (
	"encoding/json"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/goart-dev/art/tokenizer"
)

// byteVocabulary has all single bytes, some pieces, control tokens without text and one end.
func byteVocabulary(pieces ...string) *Vocabulary {
	var tokens [][]byte
	for b := range 256 {
		tokens = append(tokens, []byte{byte(b)})
	}
	for _, p := range pieces {
		tokens = append(tokens, []byte(p))
	}
	tokens = append(tokens, nil, nil) // a control token, and the end
	v, err := NewVocabulary(tokens, []int32{int32(len(tokens) - 1)})
	if err != nil {
		panic(err)
	}
	return v
}

// jsonPieces are tokens as byte-pair encoding of JSON text makes them.
var jsonPieces = []string{
	`{"`, `":`, `": `, `", "`, `"}`, `"},`, `"}, {"`, `]}`, `, `, `[]`, `{}`, `[{"`, `null`, `true`, `false`, "name", "na",
	"é", "世", "界", "\xe4\xb8", "\x96a", "\xf0\x9f", "\x98\x80", `\n`, `\u`, `\ud83d`, `\ude00`, `00`, "12", "3.5", "e+", "-1",
	"  ", "\n", "a\"", "the quick brown fox jumps", "tool_call>", "<tool", "ab", "abc", "b", `\"`, `\\`, "\"\\", `"a`, `": "`,
	`": [`, `": {"`, "2024-", "-01", "@", "http", "\u2028", "\x7f", "z\xc3", "\xa9\"", "x\": 1", "1, ", "1}", "0.5, \"",
}

func mustCompile(t testing.TB, g Grammar, v *Vocabulary) *Compiled {
	t.Helper()
	c, err := Compile(g, v, nil)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// checkMask compares the mask of a matcher with what Accept says of each token, and returns the allowed ids.
func checkMask(t testing.TB, m *Matcher) []int32 {
	t.Helper()
	v := m.compiled.vocabulary
	mask := make([]uint32, v.MaskWords())
	m.Mask(mask)
	var allowed []int32
	for id := range int32(v.Size()) {
		ok := m.Clone().Accept(id) == nil
		if ok != hasBit(mask, id) {
			t.Fatalf("token %d %q: Accept %v, Mask %v", id, v.tokens[id], ok, hasBit(mask, id))
		}
		if ok {
			allowed = append(allowed, id)
		}
	}
	if len(allowed) == 0 && !m.Ended() {
		t.Fatal("no token is allowed before the end")
	}
	if id, ok := m.Forced(); ok != (len(allowed) == 1) || ok && id != allowed[0] {
		t.Fatalf("Forced %d %v, allowed %v", id, ok, allowed)
	}
	return allowed
}

// walkMasks samples allowed tokens until the end, and returns the text. It prefers the end after a while.
func walkMasks(t testing.TB, c *Compiled, rng *rand.Rand, check bool) (string, bool) {
	t.Helper()
	v, m := c.vocabulary, c.Matcher()
	mask := make([]uint32, v.MaskWords())
	var text strings.Builder
	for range 3000 {
		m.Mask(mask)
		var allowed []int32
		if check {
			allowed = checkMask(t, m)
		} else {
			for id := range int32(v.Size()) {
				if hasBit(mask, id) {
					allowed = append(allowed, id)
				}
			}
		}
		if len(allowed) == 0 {
			t.Fatalf("no token after %q", text.String())
		}
		id := allowed[rng.IntN(len(allowed))]
		if m.Finished() && rng.IntN(4) == 0 {
			id = v.end[0]
		} else if q := closing(v, mask); q >= 0 && rng.IntN(3) == 0 {
			id = q
		}
		if err := m.Accept(id); err != nil {
			t.Fatalf("after %q: %v", text.String(), err)
		}
		if m.Ended() {
			return text.String(), true
		}
		text.Write(v.tokens[id])
	}
	return text.String(), false
}

// closing returns an allowed token that closes something, or -1.
func closing(v *Vocabulary, mask []uint32) int32 {
	for _, text := range []string{`"`, "]", "}"} {
		if id, ok := tokenIDs(v)[text]; ok && hasBit(mask, id) {
			return id
		}
	}
	return -1
}

// newRand returns a seeded source and prints the seed of a failure.
func newRand(t testing.TB, seed uint64) *rand.Rand {
	t.Helper()
	t.Logf("seed %d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}

// acceptText accepts a text in random tokens, and reports whether it may end there.
func acceptText(m *Matcher, text string, rng *rand.Rand) (bool, error) {
	for _, id := range split(m.compiled.vocabulary, text, rng, 0.5) {
		if err := m.Accept(id); err != nil {
			return false, err
		}
	}
	return m.Finished(), nil
}

// matches reports whether a text is of a grammar.
func matches(t testing.TB, c *Compiled, text string, rng *rand.Rand) bool {
	t.Helper()
	done, err := acceptText(c.Matcher(), text, rng)
	return err == nil && done
}

var sampleGrammars = map[string]Grammar{
	"literal":  Literal(`{"name": "a"}`),
	"choice":   Choice("a", "ab", "abc", "é", "界世", ""),
	"regex":    Regex(`(?:na|name|é|[a-c]{2,5})*(?:"|\n)\p{L}{1,3}`),
	"object":   JSONObject(nil),
	"any":      JSONObject(&JSONOptions{Whitespace: AnySpaces}),
	"compact":  JSONObject(&JSONOptions{Whitespace: NoSpaces}),
	"text":     Text(),
	"stops":    Sequence(Text("<tool_call>", "ab"), Choice("<tool_call>", "abc")),
	"repeat":   Repeat(Choice("ab", "abc", "b"), 2, 4),
	"strings":  JSONSchema([]byte(`{"type":"string","minLength":2,"maxLength":5}`), nil),
	"long":     JSONSchema([]byte(`{"type":"string","minLength":30}`), nil),
	"pattern":  JSONSchema([]byte(`{"type":"string","pattern":"^a.*[\"世]$","maxLength":12}`), nil),
	"date":     JSONSchema([]byte(`{"type":"string","format":"date-time"}`), nil),
	"numbers":  JSONSchema([]byte(`{"type":["number","null"],"minimum":-1.25,"exclusiveMaximum":12}`), nil),
	"person":   JSONSchema([]byte(personSchema), nil),
	"optional": JSONSchema([]byte(`{"type":"object","properties":{"a":{},"ab":{"type":"null"},"b":{"enum":[1,"ab"]}}}`), nil),
	"tree": JSONSchema([]byte(`{"$defs":{"n":{"type":"object","properties":{"name":{"type":"string"},"next":{"type":"array",`+
		`"items":{"anyOf":[{"$ref":"#/$defs/n"},{"type":"null"}]}}},"required":["next"]}},"$ref":"#/$defs/n"}`), nil),
}

func TestMask_EqualsAcceptOfEachToken(t *testing.T) {
	v := byteVocabulary(jsonPieces...)
	for name, g := range sampleGrammars {
		t.Run(name, func(t *testing.T) {
			rng := newRand(t, 1)
			c := mustCompile(t, g, v)
			for range 4 {
				m := c.Matcher()
				for range 60 {
					allowed := checkMask(t, m)
					if len(allowed) == 0 {
						break
					}
					if err := m.Accept(allowed[rng.IntN(len(allowed))]); err != nil {
						t.Fatal(err)
					}
				}
			}
		})
	}
}

func TestMask_EqualsAcceptWithOwnVocabulary(t *testing.T) {
	v := tinyVocabulary(t)
	rng := newRand(t, 2)
	for _, name := range []string{"person", "tree", "stops", "any"} {
		m := mustCompile(t, sampleGrammars[name], v).Matcher()
		for range 80 {
			allowed := checkMask(t, m)
			if len(allowed) == 0 {
				break
			}
			if err := m.Accept(allowed[rng.IntN(len(allowed))]); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// tinyVocabulary is that of the tokenizer package's test file.
func tinyVocabulary(t testing.TB) *Vocabulary {
	t.Helper()
	file, err := os.ReadFile(filepath.Join("..", "..", "tokenizer", "testdata", "tokenizer.json"))
	if err != nil {
		t.Fatal(err)
	}
	tok, err := tokenizer.New(file, []byte(`{}`))
	if err != nil {
		t.Fatal(err)
	}
	end, _ := tok.TokenID("<|im_end|>")
	tokens := make([][]byte, tok.VocabSize())
	for id := range tokens {
		if !tok.IsSpecial(int32(id)) {
			tokens[id] = tok.TokenBytes(int32(id))
		}
	}
	v, err := NewVocabulary(tokens, []int32{end})
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestMask_IsNotEmptyWithoutSomeBytes(t *testing.T) {
	tokens := [][]byte{nil}
	for _, text := range []string{"a", "b", `"`, "[", "]", ",", " ", "ab", "aé", "1", "2", "1.", `", "`, `\u`, "\xc3"} {
		tokens = append(tokens, []byte(text))
	}
	v, err := NewVocabulary(tokens, []int32{0})
	if err != nil {
		t.Fatal(err)
	}
	rng := newRand(t, 3)
	c := mustCompile(t, JSONSchema([]byte(`{"type":"array","items":{"type":["string","number"]}}`), nil), v)
	for range 50 {
		text, done := walkMasks(t, c, rng, true)
		if done && !json.Valid([]byte(text)) {
			t.Errorf("%q is not JSON", text)
		}
	}
	if _, err := Compile(JSONObject(nil), v, nil); err == nil {
		t.Error("an object was compiled without a token for the brace")
	}
}

func TestAccept_LeavesStateAfterError(t *testing.T) {
	v := byteVocabulary(jsonPieces...)
	m := mustCompile(t, Literal("abc"), v).Matcher()
	for _, id := range []int32{'b', -1, int32(v.Size()), v.end[0], int32(v.Size()) - 2} {
		if err := m.Accept(id); err == nil {
			t.Errorf("token %d was accepted", id)
		}
	}
	if ok := matches(t, m.compiled, "abc", newRand(t, 4)); !ok {
		t.Error("abc was not accepted")
	}
	if done, err := acceptText(m, "abc", newRand(t, 4)); err != nil || !done {
		t.Errorf("after errors: %v %v", done, err)
	}
	if err := m.Accept(v.end[0]); err != nil || !m.Ended() {
		t.Errorf("end: %v", err)
	}
	if err := m.Accept(v.end[0]); err == nil {
		t.Error("a token was accepted after the end")
	}
	if allowed := checkMask(t, m); len(allowed) > 0 {
		t.Errorf("after the end %v are allowed", allowed)
	}
}

func TestClone_IsIndependent(t *testing.T) {
	v := byteVocabulary()
	m := mustCompile(t, Choice("ab", "ac"), v).Matcher()
	if err := m.Accept('a'); err != nil {
		t.Fatal(err)
	}
	clone := m.Clone()
	if err := clone.Accept('b'); err != nil {
		t.Fatal(err)
	}
	if err := m.Accept('c'); err != nil {
		t.Fatal(err)
	}
	if !clone.Finished() || !m.Finished() {
		t.Error("one of both is not finished")
	}
}

func TestForcedText_IsCommonToAllContinuations(t *testing.T) {
	v := byteVocabulary(jsonPieces...)
	schema := `{"type":"object","properties":{"name":{"enum":["abc","abd"]},"n":{"type":"null"}},` +
		`"required":["name","n"],"additionalProperties":false}`
	c := mustCompile(t, JSONSchema([]byte(schema), nil), v)
	m := c.Matcher()
	if got, want := string(m.ForcedText()), `{"name": "ab`; got != want {
		t.Errorf("forced %q, want %q", got, want)
	}
	if _, ok := m.Forced(); ok {
		t.Error("one token is forced, although several spell the text")
	}
	if _, err := acceptText(m, `{"name": "abd`, newRand(t, 5)); err != nil {
		t.Fatal(err)
	}
	if got, want := string(m.ForcedText()), `", "n": null}`; got != want {
		t.Errorf("forced %q, want %q", got, want)
	}
	if _, err := acceptText(m, `", "n": null}`, newRand(t, 5)); err != nil {
		t.Fatal(err)
	}
	if id, ok := m.Forced(); !ok || id != v.end[0] || len(m.ForcedText()) > 0 {
		t.Errorf("forced %d %v, want the end", id, ok)
	}
}

func TestCompiled_ForgetsInBoundedMemory(t *testing.T) {
	v := byteVocabulary(jsonPieces...)
	c := mustCompile(t, JSONSchema([]byte(`{"type":"array"}`), nil), v)
	m, mask := c.Matcher(), make([]uint32, v.MaskWords())
	for i := range 3 * maxConfigs {
		if err := m.Accept('['); err != nil {
			t.Fatal(err)
		}
		if i%1000 == 0 {
			m.Mask(mask)
		}
		if len(c.machine.configs) > maxConfigs+10 {
			t.Fatalf("%d configurations are kept", len(c.machine.configs))
		}
	}
	if c.generation == 0 {
		t.Fatal("nothing was forgotten")
	}
	checkMask(t, m)
	for range 3 * maxConfigs {
		if err := m.Accept(']'); err != nil {
			t.Fatal(err)
		}
	}
	if !m.Finished() || !matches(t, c, "[[], [[]]]", newRand(t, 6)) {
		t.Error("the nested array was not finished")
	}
}

func TestCompiled_ServesConcurrentMatchers(t *testing.T) {
	v := byteVocabulary(jsonPieces...)
	c := mustCompile(t, JSONSchema([]byte(personSchema), nil), v)
	t.Log("seeds 0 to 7")
	var wait sync.WaitGroup
	for seed := range uint64(8) {
		wait.Go(func() {
			rng := rand.New(rand.NewPCG(seed, 0))
			for range 3 {
				if done, err := acceptText(c.Matcher(), personDocument, rng); err != nil || !done {
					t.Errorf("document: %v %v", done, err)
				}
				mask := make([]uint32, v.MaskWords())
				m := c.Matcher()
				m.Mask(mask)
				if !hasBit(mask, '{') || hasBit(mask, '[') {
					t.Error("wrong mask at the beginning")
				}
			}
		})
	}
	wait.Wait()
}
