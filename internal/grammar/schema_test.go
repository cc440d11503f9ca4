package grammar

import (
	"encoding/json"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/goart-dev/art/ruler/reward/schema"
)

// checkDocument fails unless a text is JSON in UTF-8 that a library finds valid.
func checkDocument(t testing.TB, s *schema.Schema, source, text string) {
	t.Helper()
	switch {
	case !utf8.ValidString(text):
		t.Fatalf("%q is not UTF-8", text)
	case !json.Valid([]byte(text)):
		t.Fatalf("%q is not JSON; schema %s", text, source)
	}
	if err := s.Check(json.RawMessage(text)); err != nil {
		t.Fatalf("%s is not valid: %v; schema %s", text, err, source)
	}
}

// schemaShape returns the shape of a seed.
func schemaShape(rng *rand.Rand) shape {
	s := randomShape(rng, 3)
	if rng.IntN(4) == 0 {
		return treeShape(s)
	}
	return s
}

func TestJSONSchema_FinishedOutputIsValid(t *testing.T) {
	v := byteVocabulary(jsonPieces...)
	finished := 0
	for seed := range uint64(150) {
		rng := newRand(t, seed)
		s := schemaShape(rng)
		parsed, err := schema.Parse([]byte(s.schema))
		if err != nil {
			t.Fatalf("%s: %v", s.schema, err)
		}
		options := JSONOptions{Whitespace: Whitespace(rng.IntN(3)), Closed: rng.IntN(2) == 0}
		c := mustCompile(t, JSONSchema([]byte(s.schema), &options), v)
		for range 4 {
			if text, done := walkMasks(t, c, rng, false); done {
				finished++
				checkDocument(t, parsed, s.schema, text)
			}
		}
	}
	if finished < 300 {
		t.Errorf("only %d of 600 walks came to an end", finished)
	}
}

func TestJSONSchema_AcceptsDocumentsInAnyTokens(t *testing.T) {
	v := byteVocabulary(jsonPieces...)
	for seed := range uint64(200) {
		rng := newRand(t, seed)
		s := schemaShape(rng)
		c := mustCompile(t, JSONSchema([]byte(s.schema), nil), v)
		parsed, err := schema.Parse([]byte(s.schema))
		if err != nil {
			t.Fatal(err)
		}
		for range 4 {
			text := s.write(rng, 3)
			checkDocument(t, parsed, s.schema, text) // or the writer is wrong
			if done, err := acceptText(c.Matcher(), text, rng); err != nil || !done {
				t.Fatalf("%s is refused: %v (done %v); schema %s", text, err, done, s.schema)
			}
		}
	}
}

func TestJSONObject_AcceptsWhatItMeans(t *testing.T) {
	v := byteVocabulary(jsonPieces...)
	rng := newRand(t, 1)
	spaced := mustCompile(t, JSONObject(nil), v)
	compact := mustCompile(t, JSONObject(&JSONOptions{Whitespace: NoSpaces}), v)
	free := mustCompile(t, JSONObject(&JSONOptions{Whitespace: AnySpaces}), v)
	for _, tt := range []struct {
		text                  string
		spaced, compact, free bool
	}{
		{`{}`, true, true, true},
		{`{"a": 1, "b": [null, true]}`, true, false, true},
		{`{"a":1,"b":[null,true]}`, false, true, true},
		{"{\n  \"a\" :\t1 ,\r\n \"b\":[ ]\n}", false, false, true},
		{`{"a":` + strings.Repeat(" ", MaxSpaces) + `1}`, false, false, true},
		{`{"a":` + strings.Repeat(" ", MaxSpaces+1) + `1}`, false, false, false},
		{`{"\ud83d\ude00":{}}`, false, true, true},
		{`{"\ud83d":{}}`, false, false, false},
		{`{"\ude00\ud83d":{}}`, false, false, false},
		{`{"a":01}`, false, false, false},
		{`{"a":1.}`, false, false, false},
		{`{"a":1e999}`, false, false, false},
		{`{"a",}`, false, false, false},
		{`{"a":1,}`, false, false, false},
		{"{\"\xff\":1}", false, false, false},
		{"{\"\xed\xa0\x80\":1}", false, false, false},
		{"{\"\xc0\x80\":1}", false, false, false},
		{"{\"\n\":1}", false, false, false},
		{` {}`, false, false, false},
		{`[]`, false, false, false},
	} {
		for i, c := range []*Compiled{spaced, compact, free} {
			if got, want := matches(t, c, tt.text, rng), []bool{tt.spaced, tt.compact, tt.free}[i]; got != want {
				t.Errorf("%q with whitespace %d: %v, want %v", tt.text, i, got, want)
			}
		}
	}
}

// The schema library agrees on what is allowed.
func TestJSONSchema_Keywords(t *testing.T) {
	v := byteVocabulary(jsonPieces...)
	rng := newRand(t, 1)
	for _, tt := range []struct {
		name, schema string
		yes, no      []string
	}{
		{"additional", `{"properties":{"a":{"type":"null"}},"additionalProperties":{"type":"boolean"}}`,
			[]string{`{}`, `{"a": null}`, `{"b": true}`, `{"a": null, "b": true, "aa": false}`}, []string{`{"a": true}`, `{"b": null}`, `1`}},
		{"required without property", `{"type":"object","required":["z","y"]}`,
			[]string{`{"z": 1, "y": null}`, `{"z": 1, "y": 2, "a": 3}`}, []string{`{}`, `{"z": 1}`}},
		{"forbidden", `{"type":"object","properties":{"a":false,"b":true}}`, []string{`{"b": 1}`, `{"c": 1}`}, []string{`{"a": 1}`}},
		{"all", `{"allOf":[{"properties":{"a":{"minimum":2}},"required":["a"]},{"properties":{"a":{"type":"integer","maximum":5},"b":{}}}],
			"additionalProperties":{"type":["integer","null"]}}`, []string{`{"a": 2}`, `{"a": 5, "b": null}`}, []string{`{"a": 1}`, `{"a": 6}`, `{}`}},
		{"branches", `{"type":"object","properties":{"k":{"type":"string"},"v":{}},"additionalProperties":false,"anyOf":[
			{"properties":{"k":{"const":"n"},"v":{"type":"integer"}},"required":["k","v"]},
			{"properties":{"k":{"const":"s"},"v":{"type":"string"}},"required":["k"]}]}`,
			[]string{`{"k": "n", "v": 1}`, `{"k": "s", "v": ""}`, `{"k": "s"}`}, []string{`{"k": "n"}`, `{"k": "n", "v": ""}`, `{"k": "x"}`}},
		{"patterns", `{"allOf":[{"pattern":"^a"},{"pattern":"b$"},{"minLength":3}]}`, []string{`"aab"`, `"a\nb"`}, []string{`"ab"`, `"aba"`, `"bab"`}},
		{"search", `{"type":"string","pattern":"b|^a"}`, []string{`"xbx"`, `"ax"`}, []string{`"xa"`, `""`}},
		{"multiple", `{"type":"number","multipleOf":7,"minimum":-20}`, []string{"0", "-14", "7", "7777"}, []string{"1", "-21", "15"}},
		{"multiples", `{"allOf":[{"type":"integer","multipleOf":4},{"multipleOf":6}]}`, []string{"0", "24", "-12"}, []string{"4", "6"}},
		{"tuple", `{"type":"array","prefixItems":[{"type":"null"},{"type":"boolean"}],"items":false,"minItems":1}`,
			[]string{`[null]`, `[null, true]`}, []string{`[]`, `[true]`, `[null, true, 1]`}},
		{"enum and const", `{"enum":[1,2,"a"],"const":2.0}`, []string{"2"}, []string{"1"}},
		{"reference with constraint", `{"$defs":{"s":{"type":"string"}},"allOf":[{"$ref":"#/$defs/s"}],"maxLength":1}`,
			[]string{`""`, `"世"`, `"\n"`}, []string{`"ab"`, `1`}},
		{"escaped reference", `{"$defs":{"a/b":{"type":"null"}},"$ref":"#/$defs/a~1b"}`, []string{"null"}, []string{"1"}},
		{"self in alternatives", `{"anyOf":[{"$ref":"#"},{"type":"null"}]}`, []string{"null"}, []string{"1"}},
		{"never in a union", `{"anyOf":[false,{"type":"null"},{"type":"string","minLength":3,"maxLength":2}]}`, []string{"null"}, []string{`""`}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := mustCompile(t, JSONSchema([]byte(tt.schema), nil), v)
			parsed, err := schema.Parse([]byte(tt.schema))
			if err != nil && tt.name != "self in alternatives" { // which the library refuses
				t.Fatal(err)
			}
			for i, text := range append(tt.yes, tt.no...) {
				want := i < len(tt.yes)
				if got := matches(t, c, text, rng); got != want {
					t.Errorf("%s: %v, want %v", text, got, want)
				}
				if parsed != nil && want && parsed.Check([]byte(text)) != nil {
					t.Errorf("%s: the library says no", text)
				}
			}
		})
	}
}

func TestJSONSchema_OptionsAndNullable(t *testing.T) {
	v := byteVocabulary()
	rng := newRand(t, 1)
	object := `{"type":"object","properties":{"a":{"type":"string","nullable":true}}}`
	open := mustCompile(t, JSONSchema([]byte(object), nil), v)
	closed := mustCompile(t, JSONSchema([]byte(object), &JSONOptions{Closed: true}), v)
	for text, want := range map[string][2]bool{
		`{"a": null}`: {true, true}, `{"a": "x"}`: {true, true}, `{"a": 1}`: {}, `{"b": 1}`: {true, false},
	} {
		if got := [2]bool{matches(t, open, text, rng), matches(t, closed, text, rng)}; got != want {
			t.Errorf("%s: %v, want %v", text, got, want)
		}
	}
}

func TestJSONSchema_RefusesByName(t *testing.T) {
	v := byteVocabulary()
	deep := strings.Repeat(`{"items":`, 200) + "{}" + strings.Repeat("}", 200)
	for schema, want := range map[string]string{
		`{"properties":{"a":{"not":{}}}}`:                   "#/properties/a/not: the keyword not",
		`{"patternProperties":{}}`:                          "#/patternProperties",
		`{"if":true}`:                                       "#/if",
		`{"uniqueItems":true}`:                              "#/uniqueItems",
		`{"minProperties":1}`:                               "#/minProperties",
		`{"typo":1}`:                                        "#/typo",
		`{"properties":{"a/b":{"dependentRequired":{}}}}`:   "#/properties/a~1b/dependentRequired",
		`{"format":"idn-email"}`:                            `#/format: the format "idn-email"`,
		`{"pattern":"(?=a)"}`:                               "#/pattern",
		`{"pattern":"\\bx"}`:                                "WordBoundary",
		`{"type":"float"}`:                                  "#/type",
		`{"type":[]}`:                                       "#/type",
		`{"type":"integer","multipleOf":0.5}`:               "#/multipleOf",
		`{"multipleOf":1001}`:                               "#/multipleOf",
		`{"allOf":[{"multipleOf":997},{"multipleOf":991}]}`: "multipleOf is above",
		`{"minLength":-1}`:                                  "#/minLength",
		`{"minLength":1.5}`:                                 "#/minLength",
		`{"minimum":"1"}`:                                   "#/minimum",
		`{"minimum":1e999}`:                                 "#/minimum",
		`{"exclusiveMinimum":true}`:                         "#/exclusiveMinimum",
		`{"items":[{}]}`:                                    "prefixItems",
		`{"required":[1]}`:                                  "#/required",
		`{"anyOf":[]}`:                                      "#/anyOf",
		`{"anyOf":[{},3]}`:                                  "#/anyOf/1",
		`{"$ref":"https://example.org/s"}`:                  "#/$ref",
		`{"$ref":"#/$defs/none"}`:                           "does not exist",
		`{"properties":{"a":{"$id":"x"}}}`:                  "#/properties/a/$id",
		`{"enum":[1,1e999]}`:                                "#/enum/1",
		`{"type":"string","type":"null"}`:                   "twice",
		`{"anyOf":[{"anyOf":[{"$ref":"#"},true]},{"type":"null"}]}`: "refers to itself",
		`{"type":"string","minLength":2,"maxLength":1}`:             "no text is allowed",
		`{"type":"string","enum":[1]}`:                              "no text is allowed",
		`{"$ref":"#"}`:                                              "",
		`{"type":"array","items":{"$ref":"#"},"minItems":1}`:        "no text is allowed",
		`false`:                "no text is allowed",
		`[]`:                   "must be an object or a boolean",
		`{`:                    "is not JSON",
		`{"maxLength":100000}`: "limit Repeat",
		`{"type":"array","items":{"type":"string","maxLength":8000},"maxItems":100000}`: "limit Repeat",
		deep:                              "limit Depth",
		strings.Repeat(" ", 300000) + `1`: "limit SchemaBytes",
	} {
		_, err := Compile(JSONSchema([]byte(schema), nil), v, nil)
		if want == "" {
			if err != nil {
				t.Errorf("%.80s: %v", schema, err)
			}
			continue
		}
		var limit *LimitError
		if err == nil || !strings.Contains(err.Error(), want) || strings.HasPrefix(want, "limit") != errors.As(err, &limit) {
			t.Errorf("%.80s: error %v, want %q", schema, err, want)
		}
	}
}
