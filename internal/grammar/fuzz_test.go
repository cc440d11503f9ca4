package grammar

import (
	"encoding/json"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/goart-dev/art/ruler/reward/schema"
)

// smallLimits keep one execution of a fuzz target short.
var smallLimits = Limits{SchemaBytes: 4096, Depth: 16, Repeat: 100, States: 20_000, Rules: 200, Work: 1_000_000}

// notOfLibrary are keywords that the schema library reads differently.
var notOfLibrary = []string{"oneOf", "nullable", "$ref", "$id", "$schema", "discriminator", "\\u"}

// What a schema compiles to is never stuck, and finishes with a document that the schema library finds valid.
func FuzzJSONSchema(f *testing.F) {
	for seed := range uint64(20) {
		f.Add([]byte(schemaShape(rand.New(rand.NewPCG(seed, 0))).schema), seed)
	}
	f.Add([]byte(`{"allOf":[{"$ref":"#/a"}],"a":{"nullable":true,"oneOf":[{"const":1}]}}`), uint64(1))
	v := byteVocabulary(jsonPieces...)
	f.Fuzz(func(t *testing.T, source []byte, seed uint64) {
		c, err := Compile(JSONSchema(source, nil), v, &smallLimits)
		if err != nil {
			return
		}
		text, done := walkMasks(t, c, rand.New(rand.NewPCG(seed, 0)), false)
		if done && !json.Valid([]byte(text)) {
			t.Fatalf("%q is not JSON; schema %s", text, source)
		}
		for _, keyword := range notOfLibrary {
			if strings.Contains(string(source), keyword) {
				return
			}
		}
		if parsed, err := schema.Parse(source); done && err == nil {
			checkDocument(t, parsed, string(source), text)
		}
	})
}

// A pattern matches what Go's package regexp matches as a whole.
func FuzzRegex(f *testing.F) {
	f.Add(`^(a|é)*\d{2,3}$`, "aé12", uint64(1))
	f.Add(`(?i)[^\W_]+?\.`, "K.", uint64(2))
	f.Add(`\u00e9\\u`, `é\u`, uint64(3))
	v := byteVocabulary()
	f.Fuzz(func(t *testing.T, source, text string, seed uint64) {
		if !utf8.ValidString(text) || strings.Contains(source, `\u`) {
			return
		}
		c, err := Compile(Regex(source), v, &smallLimits)
		if err != nil {
			return
		}
		rng := rand.New(rand.NewPCG(seed, 0))
		whole, err := regexp.Compile(`^(?:` + source + `)$`)
		if err != nil {
			return
		}
		if got := matches(t, c, text, rng); got != whole.MatchString(text) {
			t.Fatalf("%q of %q: %v", text, source, got)
		}
		if found, done := walkMasks(t, c, rng, false); done && !whole.MatchString(found) {
			t.Fatalf("%q was written for %q", found, source)
		}
	})
}

// Any ids may be offered: Accept and Mask agree, and the text that was accepted is a beginning of valid JSON.
func FuzzAccept(f *testing.F) {
	f.Add([]byte(`{"name": "a", "bio": "`), uint8(1))
	f.Add([]byte{0xff, 0, 1, 2}, uint8(2))
	v := byteVocabulary(jsonPieces...)
	compiled := []*Compiled{
		mustCompile(f, sampleGrammars["person"], v), mustCompile(f, sampleGrammars["tree"], v), mustCompile(f, sampleGrammars["object"], v),
	}
	f.Fuzz(func(t *testing.T, offered []byte, which uint8) {
		m := compiled[int(which)%len(compiled)].Matcher()
		mask := make([]uint32, v.MaskWords())
		var text strings.Builder
		for i, b := range offered {
			id := int32(b)
			if i%2 == 1 && which > 100 {
				id = int32(v.Size()) - 1 - int32(b)%64
			}
			m.Mask(mask)
			if err := m.Accept(id); (err == nil) != hasBit(mask, id) {
				t.Fatalf("token %d: Mask %v, Accept %v", id, hasBit(mask, id), err)
			} else if err == nil {
				text.Write(v.tokens[id])
			}
		}
		if m.Finished() != json.Valid([]byte(text.String())) {
			t.Fatalf("%q: finished %v", text.String(), m.Finished())
		}
	})
}
