package chat

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/goart-dev/art"
)

// textFormats write one call whose arguments are text in tags, by the parsers that read them.
var textFormats = map[string]func(name string, arguments ...[2]string) string{
	qwen3Coder: func(name string, arguments ...[2]string) string {
		return "<tool_call>\n" + qwenCall(name, arguments...) + "</tool_call>"
	},
	seedOSS: func(name string, arguments ...[2]string) string {
		return "<seed:tool_call>\n" + qwenCall(name, arguments...) + "</seed:tool_call>"
	},
	miniMaxM2: func(name string, arguments ...[2]string) string {
		text := "<minimax:tool_call>\n<invoke name=\"" + name + "\">\n"
		for _, a := range arguments {
			text += fmt.Sprintf("<parameter name=%q>%s</parameter>\n", a[0], a[1])
		}
		return text + "</invoke>\n</minimax:tool_call>"
	},
	glm: func(name string, arguments ...[2]string) string {
		text := "<tool_call>" + name + "\n"
		for _, a := range arguments {
			text += fmt.Sprintf("<arg_key>%s</arg_key>\n<arg_value>%s</arg_value>\n", a[0], a[1])
		}
		return text + "</tool_call>"
	},
	deepSeekV32: func(name string, arguments ...[2]string) string {
		text := "<｜DSML｜function_calls>\n<｜DSML｜invoke name=\"" + name + "\">\n"
		for _, a := range arguments { // the model forgot to say what is a string
			text += fmt.Sprintf("<｜DSML｜parameter name=%q>%s</｜DSML｜parameter>\n", a[0], a[1])
		}
		return text + "</｜DSML｜invoke>\n</｜DSML｜function_calls>"
	},
}

func qwenCall(name string, arguments ...[2]string) string {
	text := "<function=" + name + ">\n"
	for _, a := range arguments {
		text += fmt.Sprintf("<parameter=%s>\n%s\n</parameter>\n", a[0], a[1])
	}
	return text + "</function>\n"
}

// argumentSchemas are schemas of a parameter, and what texts become; definitions are in definitionsOfTests.
var argumentSchemas = []struct {
	schema string
	want   [][2]string
}{
	{`{"type": "string"}`, [][2]string{{"5", `"5"`}, {"null", `"null"`}, {`"a"`, `"\"a\""`}, {" a ", `" a "`}, {"{}", `"{}"`}}},
	{`{}`, [][2]string{{"5", `"5"`}, {`{"a": 1}`, `"{\"a\": 1}"`}}},
	{`true`, [][2]string{{"5", `"5"`}}},
	{`{"type": "integer"}`, [][2]string{{"5", "5"}, {"-7", "-7"}, {" 5\n", "5"}, {"3.0", "3"}, {"1e3", "1000"}, {"-2.50E1", "-25"}, {"3.5", `"3.5"`},
		{"2026-01-15", `"2026-01-15"`}, {"five", `"five"`}, {"", `""`}, {"null", `"null"`}, {"12345678901234567890123", "12345678901234567890123"},
		{"1e999999999", `"1e999999999"`}, {"007", `"007"`}, {"true", `"true"`}, {"[1]", `"[1]"`}}},
	{`{"type": "number"}`, [][2]string{{"5", "5"}, {"3.0", "3.0"}, {"-1.5e3", "-1.5e3"}, {"NaN", `"NaN"`}, {"a", `"a"`}}},
	{`{"type": "boolean"}`, [][2]string{{"true", "true"}, {"False", "false"}, {"TRUE", "true"}, {"yes", `"yes"`}, {"1", `"1"`}}},
	{`{"type": "null"}`, [][2]string{{"null", "null"}, {"None", "null"}, {"x", `"x"`}}},
	{`{"type": "array"}`, [][2]string{{`[1, "a"]`, `[1, "a"]`}, {"['a', None, True]", `["a", null, true]`}, {"a, b", `"a, b"`}, {"{}", `"{}"`}}},
	{`{"type": "object"}`, [][2]string{{`{"a": {"b": [1.0]}}`, `{"a": {"b": [1.0]}}`}, {"{'a': 1}", `{"a": 1}`}, {`{"a": `, `"{\"a\": "`}}},
	{`{"type": ["integer", "null"]}`, [][2]string{{"5", "5"}, {"null", "null"}, {"None", "null"}, {"x", `"x"`}, {"3.0", "3"}}},
	{`{"type": ["string", "null"]}`, [][2]string{{"5", `"5"`}, {"null", "null"}, {"nullable", `"nullable"`}}},
	{`{"anyOf": [{"type": "integer"}, {"type": "null"}]}`, [][2]string{{"5", "5"}, {"null", "null"}, {"x", `"x"`}}},
	{`{"anyOf": [{"type": "string"}, {"type": "integer"}]}`, [][2]string{{"5", "5"}, {"five", `"five"`}, {"5.5", `"5.5"`}, {"null", `"null"`}}},
	{`{"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}`, [][2]string{{"a", `"a"`}, {`["a"]`, `["a"]`}, {"5", `"5"`}}},
	{`{"anyOf": [{}, {"type": "null"}]}`, [][2]string{{"null", "null"}, {"5", `"5"`}}},
	{`{"oneOf": [{"type": "array"}, {"type": "null"}]}`, [][2]string{{`["a", "b"]`, `["a", "b"]`}, {"null", "null"}}},
	{`{"allOf": [{"type": "boolean"}]}`, [][2]string{{"true", "true"}}},
	{`{"allOf": [{"type": ["integer", "string"]}, {"type": ["integer", "null"]}]}`, [][2]string{{"5", "5"}, {"null", `"null"`}}},
	{`{"allOf": [{"description": "a"}, {"$ref": "#/$defs/Place"}]}`, [][2]string{{`{"zip": 12}`, `{"zip": 12}`}}},
	{`{"type": "string", "nullable": true}`, [][2]string{{"null", "null"}, {"5", `"5"`}}},
	{`{"type": "integer", "nullable": true}`, [][2]string{{"null", "null"}, {"5", "5"}}},
	{`{"type": "integer", "nullable": false}`, [][2]string{{"null", `"null"`}}},
	{`{"enum": [1, 2, 3]}`, [][2]string{{"2", "2"}, {"2.0", "2"}, {"7", "7"}, {"two", `"two"`}}},
	{`{"enum": ["1", "2"]}`, [][2]string{{"1", `"1"`}, {"3", `"3"`}}},
	{`{"type": "string", "enum": ["1", "true", "null"]}`, [][2]string{{"1", `"1"`}, {"true", `"true"`}, {"null", `"null"`}}},
	{`{"enum": ["1", 2, null, false, 1.5, {"a": 1.0}]}`, [][2]string{{"1", `"1"`}, {"2", "2"}, {"null", "null"}, {"False", "false"}, {"1.50", "1.50"}, {"b", `"b"`}, {"3", "3"}}},
	{`{"const": 4}`, [][2]string{{"4", "4"}}},
	{`{"const": "4"}`, [][2]string{{"4", `"4"`}}},
	{`{"const": null}`, [][2]string{{"null", "null"}}},
	{`{"anyOf": [{"enum": ["1", "2"]}, {"type": "null"}]}`, [][2]string{{"1", `"1"`}, {"null", "null"}}},
	{`{"anyOf": [{"const": 1}, {"const": "two"}]}`, [][2]string{{"1", "1"}, {"two", `"two"`}}},
	{`{"type": "integer", "enum": ["1", "2"]}`, [][2]string{{"1", `"1"`}}},
	{`{"$ref": "#/$defs/Place"}`, [][2]string{{`{"zip": 12}`, `{"zip": 12}`}, {"12", `"12"`}}},
	{`{"$ref": "#/$defs/Chain"}`, [][2]string{{`{"zip": 12}`, `{"zip": 12}`}}},
	{`{"$ref": "#/$defs/Chain", "description": "a", "default": null}`, [][2]string{{`{"zip": 12}`, `{"zip": 12}`}}},
	{`{"anyOf": [{"$ref": "#/$defs/Maybe"}, {"$ref": "#/$defs/Level"}]}`, [][2]string{{"null", "null"}, {"5", "5"}, {"high", `"high"`}, {`{"zip": 1}`, `{"zip": 1}`}}},
	{`{"$ref": "#/definitions/a~1b~0%20c"}`, [][2]string{{"5", "5"}}},
	{`{"$ref": "#/$defs/List/prefixItems/1"}`, [][2]string{{"true", "true"}}},
	{`{"$ref": "#/properties/other"}`, [][2]string{{"5", "5"}}},
	{`{"$ref": "#/$defs/Loop"}`, [][2]string{{"5", "5"}, {"x", `"x"`}}},
	{`{"$ref": "#/$defs/Self"}`, [][2]string{{"5", `"5"`}}},
	{`{"$ref": "#/$defs/Tree"}`, [][2]string{{`{"next": {"next": null}}`, `{"next": {"next": null}}`}, {"null", "null"}}},
	{`{"$ref": "#"}`, [][2]string{{`{"v": 1}`, `{"v": 1}`}}},
	{`{"$ref": "#/$defs/Missing"}`, [][2]string{{"5", `"5"`}}},
	{`{"$ref": "other.json"}`, [][2]string{{"5", `"5"`}}},
	{`{"type": ["integer", "string"], "$ref": "#/$defs/NotNegative"}`, [][2]string{{"5", "5"}, {"a", `"a"`}}},
	{`{"properties": {"a": {}}}`, [][2]string{{`{"a": 1}`, `{"a": 1}`}, {"b", `"b"`}}},
	{`{"properties": {"a": {}}, "allOf": [{"description": "b"}]}`, [][2]string{{`{"a": 1}`, `{"a": 1}`}}},
	{`{"$ref": "#/$defs/Number"}`, [][2]string{{"5", "5"}}},
	{`{"items": {"$ref": "#/$defs/Place"}}`, [][2]string{{`[{"zip": 1}]`, `[{"zip": 1}]`}}},
	{`{"minimum": 0}`, [][2]string{{"1.5", "1.5"}}},
	{`{"type": "datetime"}`, [][2]string{{"5", `"5"`}}},
	{`{"type": 3, "enum": 4, "anyOf": 5, "$ref": 6, "allOf": [7]}`, [][2]string{{"5", `"5"`}}},
}

const definitionsOfTests = `"$defs": {
	"Place": {"type": "object", "properties": {"zip": {"type": "integer"}}}, "Chain": {"$ref": "#/$defs/Link"}, "Link": {"$ref": "#/$defs/Place"},
	"Maybe": {"anyOf": [{"$ref": "#/$defs/Chain"}, {"type": "null"}]}, "Level": {"oneOf": [{"enum": ["high", 5]}]},
	"Loop": {"anyOf": [{"$ref": "#/$defs/Pool"}, {"type": "integer"}]}, "Pool": {"anyOf": [{"$ref": "#/$defs/Loop"}]},
	"Self": {"$ref": "#/$defs/Self"}, "Tree": {"anyOf": [{"type": "object", "properties": {"next": {"$ref": "#/$defs/Tree"}}}, {"type": "null"}]},
	"List": {"prefixItems": [{}, {"type": "boolean"}]}, "NotNegative": {"minimum": 0}, "Number": {"type": "integer", "$ref": "#/$defs/Number"}}, "definitions": {"a/b~ c": {"type": "integer"}}`

// TestParse_ArgumentTypes: each format whose arguments are text gives them the types of the tool's schema, whether that
// declares them directly, by a reference or in a part.
func TestParse_ArgumentTypes(t *testing.T) {
	for _, c := range argumentSchemas {
		properties := `"properties": {"v": ` + c.schema + `, "other": {"type": "integer"}}`
		for _, whole := range []string{
			`{"type": "object", ` + properties + `, ` + definitionsOfTests + `}`,
			`{"allOf": [{"type": "object"}, {` + properties + `}], ` + definitionsOfTests + `, "properties": {"other": {"type": "integer"}}}`,
			`{"$ref": "#/$defs/Arguments", "properties": {"other": {"type": "integer"}}, ` +
				strings.Replace(definitionsOfTests, "{", `{"Arguments": {`+properties+`},`, 1) + `}`,
			`{"additionalProperties": ` + c.schema + `, "properties": {"other": {"type": "integer"}}, ` + definitionsOfTests + `}`,
		} {
			tools := []art.Tool{{Name: "f", Parameters: json.RawMessage(whole)}}
			for _, want := range c.want {
				for parser, write := range textFormats {
					checkArguments(t, parser, write("f", [2]string{"v", want[0]}), tools, `{"v": `+want[1]+`}`)
				}
			}
		}
	}
}

// checkArguments checks that a reply is one call with the wanted arguments, whatever its cuts.
func checkArguments(t *testing.T, parser, text string, tools []art.Tool, want string) {
	t.Helper()
	tokens := smallFormat(t, parser, "")
	plain := &replyFormat{name: parser, calls: callFormats[parser], tagOf: map[int32]string{}}
	for _, format := range []*replyFormat{tokens, plain} {
		text := withTokens(format, text)
		p := format.start(false, tools)
		p.add(text)
		_, err := p.close()
		calls := p.message.ToolCalls
		if err != nil || len(calls) != 1 || calls[0].Arguments != want || p.message.Content != "" {
			t.Fatalf("%s: %q with %s\n got %+v, %v\nwant %s", parser, text, tools[0].Parameters, p.message, err, want)
		}
		early := format.start(false, tools)
		early.early = true
		got := art.Message{Role: art.RoleAssistant}
		for _, piece := range strings.Split(text, "") {
			early.add(piece).addTo(&got)
		}
		last, _ := early.close()
		last.addTo(&got)
		if !reflect.DeepEqual(got, p.message) {
			t.Fatalf("%s: %q, as it grows\n got %+v\nwant %+v", parser, text, got, p.message)
		}
	}
}

// TestParse_Reports: replies that users reported.
func TestParse_Reports(t *testing.T) {
	for _, c := range []struct {
		file, parser string
		want         []string
	}{
		{"optional_and_ref", qwen3Coder, []string{
			`{"days": 5, "budget": null, "where": {"zip": 12}, "who": ["a", "b"], "level": 2, "flag": true}`}},
		{"optional_and_ref_glm", glm, []string{`{"on": 5, "ref": {"k": 1}}`}},
		{"optional_and_ref_minimax_m2", miniMaxM2, []string{`{"on": 5, "ref": {"k": 1}}`}},
		{"optional_and_ref_seed_oss", seedOSS, []string{`{"on": 5, "ref": {"k": 1}}`}},
		{"value_not_of_type", qwen3Coder, []string{`{"day": "2026-01-15", "note": "x"}`, `{"day": 3}`}},
		{"missing_close", qwen3Coder, []string{`{"path": "a.py", "old": "foo"}`, `{"path": "a.py", "old": "foo"}`}},
	} {
		var cases []struct {
			Reply string
			Tools []art.Tool
		}
		must(t, json.Unmarshal(read(t, filepath.Join("testdata", "replies", c.file+".json")), &cases))
		if len(cases) != len(c.want) {
			t.Fatalf("%s: %d cases", c.file, len(cases))
		}
		for i, want := range c.want {
			_, reply, found := strings.Cut(cases[i].Reply, "</think>")
			if !found {
				reply = cases[i].Reply
			}
			checkArguments(t, c.parser, reply, cases[i].Tools, want)
		}
	}
}

// TestSchema_Hostile: schemas whose references multiply are read in linear time.
func TestSchema_Hostile(t *testing.T) {
	var definitions []string
	for i := range 60 {
		definitions = append(definitions, fmt.Sprintf(
			`"d%d": {"anyOf": [{"$ref": "#/$defs/d%d"}, {"$ref": "#/$defs/d%d"}, {"enum": [%d]}],
			"allOf": [{"$ref": "#/$defs/d%d"}]}`, i, i+1, (i+2)%60, i, (i+30)%60))
	}
	tools := []art.Tool{{Name: "f", Parameters: json.RawMessage(
		`{"properties": {"v": {"$ref": "#/$defs/d0"}}, "$defs": {` + strings.Join(definitions, ", ") +
			`, "d60": {"type": "integer"}}}`)}}
	if got := schemaOf(tools, "f").typed("v", "x"); got != `"x"` {
		t.Error(got)
	}
}

// FuzzArgument: whatever the schema and the text, the value is JSON that keeps the text, or the value that it writes.
func FuzzArgument(f *testing.F) {
	for _, c := range argumentSchemas {
		for _, want := range c.want {
			f.Add(c.schema, want[0])
		}
	}
	f.Fuzz(func(t *testing.T, schema, text string) {
		text = strings.ToValidUTF8(text, "")
		parameters := `{"properties": {"v": ` + schema + `}, ` + definitionsOfTests + `}`
		if len(text) > 300 || len(schema) > 1000 || !json.Valid([]byte(parameters)) {
			return
		}
		got := schemaOf([]art.Tool{{Name: "f", Parameters: json.RawMessage(parameters)}}, "f").typed("v", text)
		value, ok := decodeNumbers(got)
		if kept, isText := value.(string); !ok || isText && kept != text {
			t.Errorf("%q with %s becomes %s", text, schema, got)
		}
		if again := valueOrText(text); json.Valid([]byte(text)) && got != quote(text) && !sameJSON(got, again) {
			t.Errorf("%q with %s becomes %s, not %s", text, schema, got, again)
		}
	})
}

// TestQuote_Valid: every text is written as a JSON string that says the same.
func TestQuote_Valid(t *testing.T) {
	rng := seeded(t)
	pieces := []string{`\`, `\\`, "u2028", "\u2028", "\u2029", `"`, "\n", "a", "<", "\x00"}
	for range 2000 {
		var text strings.Builder
		for range rng.IntN(6) {
			text.WriteString(pieces[rng.IntN(len(pieces))])
		}
		var got string
		if err := json.Unmarshal([]byte(quote(text.String())), &got); err != nil || got != text.String() {
			t.Fatalf("%q is written as %s (%v)", text.String(), quote(text.String()), err)
		}
	}
}
