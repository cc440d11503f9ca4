package chat

import (
	"encoding/json"
	"io"
	"maps"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/internal/jsonschema"
)

// impliedTypes are the types of the values that a keyword constrains: what a schema without "type" means.
var impliedTypes = map[string]jsonschema.Types{
	"properties": jsonschema.Object, "required": jsonschema.Object, "additionalProperties": jsonschema.Object,
	"items": jsonschema.Array, "prefixItems": jsonschema.Array,
	"minimum": jsonschema.Number, "maximum": jsonschema.Number, "multipleOf": jsonschema.Number,
	"exclusiveMinimum": jsonschema.Number, "exclusiveMaximum": jsonschema.Number,
}

// valueTypes is which values a schema allows, as far as types, enum and const tell.
type valueTypes struct {
	types  jsonschema.Types
	values map[string]jsonschema.Types // further values, as [canonical] writes them, with their types
	any    bool                        // the schema allows everything; types and values are hints
}

// of returns the types of all values.
func (v valueTypes) of() jsonschema.Types {
	all := v.types
	for _, of := range v.values {
		all |= of
	}
	return all
}

func (v valueTypes) or(w valueTypes) valueTypes {
	values := map[string]jsonschema.Types{}
	maps.Copy(values, v.values)
	maps.Copy(values, w.values)
	return valueTypes{v.types | w.types, values, v.any || w.any}
}

func (v valueTypes) and(w valueTypes) valueTypes {
	switch {
	case v.any && w.any:
		return v.or(w)
	case v.any:
		return w
	case w.any:
		return v
	}
	both := valueTypes{types: v.types & w.types, values: map[string]jsonschema.Types{}}
	for _, side := range [][2]valueTypes{{v, w}, {w, v}} {
		for value, of := range side[0].values {
			if side[1].types&of != 0 || side[1].values[value] != 0 {
				both.values[value] = of
			}
		}
	}
	return both
}

// argumentSchema is the schema of the arguments of a tool.
//
// internal/grammar has a parser of schemas too, which refuses what it cannot enforce. Here a keyword that is not
// understood must not matter: the less a schema says, the more values are strings.
type argumentSchema struct {
	root  any
	names []string // of the arguments that it declares, in order
}

// schemaOf returns the schema of the arguments of a tool. Of an unknown tool it says nothing.
func schemaOf(tools []art.Tool, name string) *argumentSchema {
	s := &argumentSchema{}
	if at := slices.IndexFunc(tools, func(t art.Tool) bool { return t.Name == name }); at >= 0 {
		s.root, _ = decodeNumbers(string(tools[at].Parameters)) // if it is not JSON, it says nothing
	}
	declared := map[string]any{}
	r := schemaReader{root: s.root, leaf: func(keywords map[string]any) valueTypes {
		properties, _ := keywords["properties"].(map[string]any)
		maps.Copy(declared, properties)
		return valueTypes{any: true}
	}}
	r.read(s.root)
	s.names = slices.Sorted(maps.Keys(declared))
	return s
}

// types returns what an argument may be.
func (s *argumentSchema) types(name string) valueTypes {
	r := schemaReader{root: s.root}
	r.leaf = func(keywords map[string]any) valueTypes {
		of := schemaReader{root: s.root, leaf: ownTypes}
		properties, _ := keywords["properties"].(map[string]any)
		if property, ok := properties[name]; ok {
			return of.read(property)
		}
		return of.read(keywords["additionalProperties"])
	}
	return r.read(s.root)
}

// schemaReader combines what the parts of a schema say: those that $ref, allOf, anyOf and oneOf name.
type schemaReader struct {
	root any
	leaf func(keywords map[string]any) valueTypes // what a part says by itself
	seen map[string]valueTypes                    // by $ref
}

func (r *schemaReader) read(schema any) valueTypes {
	keywords, ok := schema.(map[string]any)
	if !ok { // true allows everything, as does a schema that is absent
		return valueTypes{any: true}
	}
	out := r.leaf(keywords)
	if ref, ok := keywords["$ref"].(string); ok {
		out = out.and(r.follow(ref))
	}
	for _, part := range listOf(keywords["allOf"]) {
		out = out.and(r.read(part))
	}
	for _, key := range []string{"anyOf", "oneOf"} {
		if alternatives := listOf(keywords[key]); len(alternatives) > 0 {
			one := r.read(alternatives[0])
			for _, alternative := range alternatives[1:] {
				one = one.or(r.read(alternative))
			}
			out = out.and(one)
		}
	}
	if keywords["nullable"] == true { // as OpenAPI 3.0 has it
		out.types |= jsonschema.Null
	}
	return out
}

// follow reads the part that a $ref points to, once. A loop of them adds nothing, and neither does what does not exist.
func (r *schemaReader) follow(ref string) valueTypes {
	if known, ok := r.seen[ref]; ok {
		return known
	}
	if r.seen == nil {
		r.seen = map[string]valueTypes{}
	}
	r.seen[ref] = valueTypes{any: true}
	names, err := jsonschema.ParseRef(ref)
	if err != nil {
		return r.seen[ref]
	}
	target := r.root
	for _, name := range names {
		switch v := target.(type) {
		case map[string]any:
			target = v[name]
		case []any:
			target = nil
			if i, err := strconv.Atoi(name); err == nil && 0 <= i && i < len(v) {
				target = v[i]
			}
		default:
			target = nil
		}
	}
	r.seen[ref] = r.read(target)
	return r.seen[ref]
}

func listOf(v any) []any {
	list, _ := v.([]any)
	return list
}

// ownTypes reads type, enum and const.
func ownTypes(keywords map[string]any) valueTypes {
	out := valueTypes{any: true}
	names := listOf(keywords["type"])
	if one, ok := keywords["type"].(string); ok {
		names = []any{one}
	}
	for _, name := range names {
		text, _ := name.(string)
		out.types |= jsonschema.TypesByName[text]
		out.any = false
	}
	for key := range keywords {
		if out.any {
			out.types |= impliedTypes[key]
		}
	}
	for _, key := range []string{"enum", "const"} {
		value, ok := keywords[key]
		if !ok {
			continue
		}
		list := listOf(value)
		if key == "const" {
			list = []any{value}
		}
		members := valueTypes{values: map[string]jsonschema.Types{}}
		for _, member := range list {
			text, of := canonical(member)
			members.values[text] = of
		}
		out = out.and(members)
	}
	return out
}

// canonical writes a value so that equal ones have the same text, and returns its type.
func canonical(v any) (text string, of jsonschema.Types) {
	data, err := json.Marshal(v)
	if err != nil {
		panic("chat: " + err.Error()) // it was JSON
	}
	text, of = string(data), jsonType(string(data))
	switch of {
	case jsonschema.Integer:
		text = wholeNumber(text)
	case jsonschema.String:
		text = quote(v.(string))
	}
	return text, of
}

// typed writes the text of an argument as JSON: formats whose arguments are in tags write strings as they are, and
// everything else as JSON or as Python prints it. The schema tells which one a text is:
//
//   - A text that is JSON or a Python literal, and of a type that the schema allows, is that value: 5, null or None,
//     true or True, [1, 2], {"a": 1}. So for a string or an integer, 5 is a number and "five" a string, as in vLLM
//     (coerce_to_schema_type); if strings came first, as in SGLang, the other types could never be written.
//   - A whole number such as 3.0 is an integer, as JSON Schema has it, and written as one.
//   - Where the schema allows only strings, or says nothing of the type, every text is a string: 5, null and "a" with
//     its quotes too.
//   - Of an enum or a const, only the members count: of "1" and "2", the text 1 is a string.
//   - Everything else is passed on as a string, for example 2026-01-15 as an integer: the tool refuses it, and its
//     error tells the model more than the loss of the call would.
//
// anyOf and oneOf allow what one of their parts does, allOf and a $ref with keywords beside it what all of them do.
func (s *argumentSchema) typed(name, text string) string {
	allowed := s.types(name)
	if allowed.of()&^jsonschema.String == 0 {
		return quote(text)
	}
	literal, of := readLiteral(text)
	if of == jsonschema.Integer && allowed.types&jsonschema.Fraction == 0 {
		literal = wholeNumber(literal)
	}
	switch {
	case of == 0:
		return quote(text)
	case allowed.types&of != 0, allowed.has(literal, of):
		return literal
	case allowed.any, allowed.types&jsonschema.String != 0, allowed.has(quote(text), jsonschema.String):
		return quote(text)
	case allowed.of()&of != 0: // it is none of the values of an enum, but of their type
		return literal
	}
	return quote(text)
}

// has reports whether a value is one that an enum or a const lists.
func (v valueTypes) has(text string, of jsonschema.Types) bool {
	if len(v.values) == 0 {
		return false
	}
	if of != jsonschema.String {
		value, ok := decodeNumbers(text)
		if !ok {
			return false
		}
		text, of = canonical(value)
	}
	return v.values[text]&of != 0
}

// readLiteral reads a text that is one value, JSON or a Python literal, and returns it as JSON with its type: 0 if it
// is none, or a string.
func readLiteral(text string) (literal string, of jsonschema.Types) {
	literal = strings.TrimSpace(text)
	for _, word := range []string{"true", "false"} {
		if strings.EqualFold(literal, word) {
			literal = word
		}
	}
	if literal = valueOrText(literal); jsonType(literal) == jsonschema.String {
		return "", 0
	}
	return literal, jsonType(literal)
}

// valueOrText writes a text that is JSON or a Python literal as JSON, and any other as a string.
func valueOrText(text string) string {
	if plain := strings.TrimSpace(text); json.Valid([]byte(plain)) {
		return plain
	}
	if value, ok := pythonValue(text); ok {
		return value
	}
	return quote(text)
}

func jsonType(text string) jsonschema.Types {
	switch text[0] {
	case '"':
		return jsonschema.String
	case '{':
		return jsonschema.Object
	case '[':
		return jsonschema.Array
	case 't', 'f':
		return jsonschema.Boolean
	case 'n':
		return jsonschema.Null
	}
	if wholeNumber(text) != "" {
		return jsonschema.Integer
	}
	return jsonschema.Fraction
}

func isDigits(number string) bool { return !strings.ContainsAny(number, ".eE") }

// maxNumber bounds how long a number is, in characters, whose fraction and exponent are computed.
const maxNumber = 40

// wholeNumber returns the digits of a JSON number that is an integer, such as 3.0 or 1e3, and "" for any other.
func wholeNumber(number string) string {
	if isDigits(number) {
		return number
	}
	_, exponent, _ := strings.Cut(strings.ToLower(number), "e")
	if len(number) > maxNumber || len(strings.Trim(exponent, "+-")) > 2 {
		return ""
	}
	value, ok := new(big.Rat).SetString(number)
	if !ok || !value.IsInt() {
		return ""
	}
	return value.Num().String()
}

// isNumber reports whether a text is a JSON number.
func isNumber(text string) bool {
	return json.Valid([]byte(text)) && jsonType(strings.TrimSpace(text))&(jsonschema.Integer|jsonschema.Fraction) != 0
}

// decodeNumbers decodes JSON, and keeps numbers as they are written.
func decodeNumbers(text string) (v any, ok bool) {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		return nil, false
	}
	_, err := d.Token()
	return v, err == io.EOF
}

// quote writes a JSON string as Python does: it escapes only what must be escaped.
func quote(s string) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(s); err != nil { // strings can always be encoded
		panic("chat: " + err.Error())
	}
	plain := strings.NewReplacer(`\\`, `\\`, `\u2028`, "\u2028", `\u2029`, "\u2029")
	return plain.Replace(strings.TrimSuffix(b.String(), "\n"))
}
