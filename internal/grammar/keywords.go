package grammar

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/goart-dev/art/internal/jsonschema"
)

// The methods of this file parse the keywords of one type each, and report whether a keyword is theirs.

// typeKeyword parses "type".
func (r *schemaReader) typeKeyword(_ *schemaNode, own *constraint, m member, path string) bool {
	if m.key != "type" {
		return false
	}
	names, err := stringList(m.value)
	var one string
	if json.Unmarshal(m.value, &one) == nil {
		names, err = []string{one}, nil
	}
	if err != nil || len(names) == 0 {
		failAt(path, "must be a type or a list of types")
	}
	for _, name := range names {
		if jsonschema.TypesByName[name] == 0 {
			failAt(path, "%q is not a type", name)
		}
		own.types |= jsonschema.TypesByName[name]
	}
	return true
}

// stringList parses an array of strings.
func stringList(raw json.RawMessage) ([]string, error) {
	items, err := elements(raw)
	if err != nil {
		return nil, err
	}
	out := make([]string, len(items))
	for i, item := range items {
		if kind(item) != '"' || json.Unmarshal(item, &out[i]) != nil {
			return nil, fmt.Errorf("element %d must be a string", i)
		}
	}
	return out, nil
}

// count parses a number of characters, elements or properties.
func count(raw json.RawMessage, path string) int {
	value, err := decimal(raw)
	if err != nil || !value.IsInt() || value.Sign() < 0 || !value.Num().IsInt64() || value.Num().Int64() > 1<<30 {
		failAt(path, "must be a whole number between 0 and %d", 1<<30)
	}
	return int(value.Num().Int64())
}

// numberSyntax is JSON's, with few digits in the exponent: the value is written out.
var numberSyntax = regexp.MustCompile(`^-?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]{1,2})?$`)

// decimal parses a number exactly.
func decimal(raw json.RawMessage) (*big.Rat, error) {
	text := strings.TrimSpace(string(raw))
	value, ok := new(big.Rat), false
	if numberSyntax.MatchString(text) && len(text) < 100 {
		value, ok = value.SetString(text)
	}
	if !ok {
		return nil, fmt.Errorf("must be a number of fewer than 100 digits and an exponent of at most two")
	}
	return value, nil
}

// stringKeyword parses the keywords of strings.
func (r *schemaReader) stringKeyword(_ *schemaNode, own *constraint, m member, path string) bool {
	switch m.key {
	case "minLength":
		own.strings.low = count(m.value, path)
	case "maxLength":
		own.strings.high = count(m.value, path)
	case "pattern", "format":
		var text string
		if err := json.Unmarshal(m.value, &text); err != nil {
			failAt(path, "must be a string")
		}
		if m.key == "format" {
			format, ok := formats[text]
			if !ok {
				failAt(path, "the format %q is not supported; there are %s", text,
					strings.Join(slices.Sorted(maps.Keys(formats)), ", "))
			}
			text = `^(?:` + format + `)$`
		}
		_, err := parsePattern(text)
		check(path, err)
		own.strings.patterns = append(own.strings.patterns, text)
	default:
		return false
	}
	own.implied |= jsonschema.String
	return true
}

// numberKeyword parses the keywords of numbers.
func (r *schemaReader) numberKeyword(_ *schemaNode, own *constraint, m member, path string) bool {
	switch m.key {
	case "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf":
	default:
		return false
	}
	own.implied |= jsonschema.Number
	value, err := decimal(m.value)
	check(path, err)
	switch n := &own.numbers; m.key {
	case "minimum", "exclusiveMinimum":
		n.low = stricter(n.low, &bound{value, m.key != "minimum"}, -1)
	case "maximum", "exclusiveMaximum":
		n.high = stricter(n.high, &bound{value, m.key != "maximum"}, 1)
	case "multipleOf":
		if !value.IsInt() || value.Sign() <= 0 || value.Cmp(big.NewRat(maxMultiple, 1)) > 0 {
			failAt(path, "multipleOf is supported for whole numbers from 1 to %d", maxMultiple)
		}
		n.multiple = int(value.Num().Int64())
	}
	return true
}

// maxMultiple bounds multipleOf, which takes one state for each remainder.
const maxMultiple = 1000

// stricter returns the bound that allows less: the greater of lower bounds (side -1), the lesser of upper ones (1).
func stricter(a, b *bound, side int) *bound {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	}
	if order := side * a.value.Cmp(b.value); order < 0 || order == 0 && a.exclusive {
		return a
	}
	return b
}

// objectKeyword parses the keywords of objects.
func (r *schemaReader) objectKeyword(_ *schemaNode, own *constraint, m member, path string) bool {
	switch m.key {
	case "properties", "required", "additionalProperties":
	default:
		return false
	}
	own.implied |= jsonschema.Object
	if own.object == nil {
		own.object = &objectKeywords{properties: map[string]*schemaNode{}}
	}
	switch o := own.object; m.key {
	case "properties":
		all, err := members(m.value)
		check(path, err)
		for _, p := range all {
			o.properties[p.key] = r.node(path+"/"+escapePointer(p.key), p.value)
			o.names = append(o.names, p.key)
		}
	case "required":
		var err error
		o.required, err = stringList(m.value)
		check(path, err)
	default:
		o.additional = r.node(path, m.value)
	}
	return true
}

// arrayKeyword parses the keywords of arrays.
func (r *schemaReader) arrayKeyword(_ *schemaNode, own *constraint, m member, path string) bool {
	if !slices.Contains([]string{"items", "prefixItems", "minItems", "maxItems"}, m.key) {
		return false
	}
	own.implied |= jsonschema.Array
	if own.array == nil {
		own.array = &arrayKeywords{high: -1}
	}
	switch a := own.array; m.key {
	case "prefixItems":
		a.prefix = r.list(m.value, path)
	case "minItems":
		a.low = count(m.value, path)
	case "maxItems":
		a.high = count(m.value, path)
	default:
		if kind(m.value) == '[' {
			failAt(path, "a list of schemas is written prefixItems since draft 2020-12")
		}
		a.items = r.node(path, m.value)
	}
	return true
}

// readValues parses "enum" and "const"; with both, their common values remain.
func readValues(values *constraint, m member, path string) {
	list := []json.RawMessage{m.value}
	if m.key == "enum" {
		var err error
		list, err = elements(m.value)
		check(path, err)
	}
	for i, raw := range list {
		_, err := spell(raw, NoSpaces)
		check(path+"/"+strconv.Itoa(i), err)
	}
	if values.hasValues {
		list = commonValues(values.values, list)
	}
	values.values, values.hasValues = list, true
}

// spell returns the spelling of a value of enum or const: its members in their order, numbers that are whole without a
// fraction or exponent.
func spell(raw json.RawMessage, ws Whitespace) (string, error) {
	switch kind(raw) {
	case '{':
		all, err := members(raw)
		if err != nil {
			return "", err
		}
		parts := make([]string, len(all))
		for i, m := range all {
			value, err := spell(m.value, ws)
			if err != nil {
				return "", err
			}
			parts[i] = quoteJSON(m.key) + ws.separator(":") + value
		}
		return "{" + strings.Join(parts, ws.separator(",")) + "}", nil
	case '[':
		items, err := elements(raw)
		if err != nil {
			return "", err
		}
		parts := make([]string, len(items))
		for i, item := range items {
			if parts[i], err = spell(item, ws); err != nil {
				return "", err
			}
		}
		return "[" + strings.Join(parts, ws.separator(",")) + "]", nil
	case '"':
		var text string
		err := json.Unmarshal(raw, &text)
		return quoteJSON(text), err
	case 't', 'f', 'n':
		return strings.TrimSpace(string(raw)), nil
	}
	value, err := decimal(raw)
	if err != nil || !value.IsInt() {
		return strings.TrimSpace(string(raw)), err
	}
	return value.Num().String(), nil
}

// separator returns a comma or colon with the fixed whitespace that a policy puts after it.
func (w Whitespace) separator(text string) string {
	if w == SingleSpaces {
		return text + " "
	}
	return text
}

// commonValues returns the values of a that are in b, in the order of a.
func commonValues(a, b []json.RawMessage) []json.RawMessage {
	in := map[string]bool{}
	for _, raw := range b {
		in[mustSpell(raw)] = true
	}
	var out []json.RawMessage
	for _, raw := range a {
		if in[mustSpell(raw)] {
			out = append(out, raw)
		}
	}
	return out
}

// mustSpell is spell for values that readValues has checked.
func mustSpell(raw json.RawMessage) string {
	text, err := spell(raw, NoSpaces)
	if err != nil {
		panic(err)
	}
	return text
}

// typeOf returns the type of a value.
func typeOf(raw json.RawMessage) jsonschema.Types {
	switch kind(raw) {
	case '{':
		return jsonschema.Object
	case '[':
		return jsonschema.Array
	case '"':
		return jsonschema.String
	case 't', 'f':
		return jsonschema.Boolean
	case 'n':
		return jsonschema.Null
	}
	if value, err := decimal(raw); err == nil && value.IsInt() {
		return jsonschema.Integer
	}
	return jsonschema.Fraction
}

// spelled is the spellings of a value under a whitespace policy.
func spelled(raw json.RawMessage, ws Whitespace) fragment {
	switch kind(raw) {
	case '[':
		items, _ := elements(raw) // readValues has checked it
		parts := make([]fragment, len(items))
		for i, item := range items {
			parts[i] = spelled(item, ws)
		}
		return bracketed(ws, "[", parts, "]")
	case '{':
		all, _ := members(raw)
		parts := make([]fragment, len(all))
		for i, m := range all {
			parts[i] = sequence(literal(quoteJSON(m.key)), ws.colon(), spelled(m.value, ws))
		}
		return bracketed(ws, "{", parts, "}")
	}
	return literal(mustSpell(raw))
}

// bracketed is elements between brackets.
func bracketed(ws Whitespace, open string, parts []fragment, end string) fragment {
	all := []fragment{literal(open), ws.bracket()}
	for i, part := range parts {
		if i > 0 {
			all = append(all, ws.comma())
		}
		all = append(all, part)
	}
	if len(parts) > 0 {
		all = append(all, ws.bracket())
	}
	return sequence(append(all, literal(end))...)
}
