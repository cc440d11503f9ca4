package schema_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/goart-dev/art/ruler/reward/schema"
)

const person = `{
	"type": "object",
	"properties": {
		"name": {"type": "string", "pattern": "^[A-Z]"},
		"age": {"type": "integer", "minimum": 0},
		"friends": {"type": "array", "items": {"$ref": "#"}, "maxItems": 2}
	},
	"required": ["name"],
	"additionalProperties": false
}`

func mustParse(t testing.TB, text string) *schema.Schema {
	t.Helper()
	s, err := schema.Parse(json.RawMessage(text))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestSchema_Scores(t *testing.T) {
	s := mustParse(t, person)
	for text, want := range map[string]struct{ first, only float64 }{
		`{"name":"Ann"}`: {1, 1}, "```json\n{\"name\":\"Ann\",\"age\":3.0}\n```": {1, 1}, `Sure: {"name":"Ann"}.`: {1, 0}, `{"name":"Ann"} {"name":1}`: {1, 0},
		`{"name":"ann"}`: {0, 0}, `{"name":"Ann","age":-1}`: {0, 0}, `{"name":"Ann","age":1.5}`: {0, 0}, `{"name":"Ann","x":1}`: {0, 0}, `{}`: {0, 0}, `[]`: {0, 0},
		"": {0, 0}, `{"name":"Ann"`: {0, 0}, `{"name":"Ann","friends":[{"name":"Bob","friends":[]}]}`: {1, 1}, `{"name":"Ann","friends":[{"name":"bob"}]}`: {0, 0},
		`{"name":"Ann","age":1e999}`: {0, 0},
	} {
		if first, only := s.First(text), s.Only(text); first != want.first || only != want.only {
			t.Errorf("%s: first %v, only %v", text, first, only)
		}
	}
	if s := mustParse(t, "true"); s.Only(`[1]`) != 1 {
		t.Error("true does not take everything")
	}
	deep := strings.Repeat(`{"name":"A","friends":[`, 9000/2) + strings.Repeat("]}", 9000/2)
	if s.Only(deep) != 1 {
		t.Error("a deep value is not valid")
	}
}

func TestSchema_Check(t *testing.T) {
	s := mustParse(t, person)
	if err := s.Check(json.RawMessage(`{"name":"Ann","age":"x"}`)); err == nil || !strings.Contains(err.Error(), "age") {
		t.Errorf("error is %v", err)
	}
	if err := s.Check(nil); err == nil {
		t.Error("nothing is valid")
	}
}

func TestParse_Errors(t *testing.T) {
	for _, text := range []string{
		"", "1", `{"type":1}`, `{"pattern":"("}`, `{"$ref":"#/nowhere"}`, `{"$ref":"https://example.test/x"}`, `{"type":"objekt"`,
		`{"$ref":"#"}`, `{"anyOf":[{"$ref":"#/$defs/a"}],"$defs":{"a":{"not":{"$ref":"#/$defs/b"}},"b":{"$ref":"#"}}}`, `{"properties":{"x":{"$ref":"#/properties/x"}}}`,
		`{"$defs":{"a/b~":{"$anchor":"q","$dynamicRef":"#q"}}}`, `{"$ref":"#/%zz"}`, `{"$id":"http://x.test/y","properties":{"a":{"$ref":"y"}}}`,
		`{"dependentSchemas":{"a/b":{"$ref":"#/dependentSchemas/a~1b"}}}`,
	} {
		if _, err := schema.Parse(json.RawMessage(text)); err == nil {
			t.Errorf("%s is a schema", text)
		}
	}
}

func FuzzSchema(f *testing.F) {
	s := mustParse(f, person)
	f.Add(person, `{"name":"Ann","age":3}`)
	f.Add(`{"anyOf":[{"const":1},{"$ref":"#"}],"multipleOf":0.1}`, `{"a":[]}`)
	f.Add(`{"AnyOf":[{},{"$ref":"#"}]}`, `{}`)
	f.Fuzz(func(t *testing.T, text, value string) {
		s.First(value)
		if other, err := schema.Parse(json.RawMessage(text)); err == nil {
			other.Only(value)
		}
	})
}
