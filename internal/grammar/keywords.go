package grammar

import (
	"encoding/json"
	"fmt"
	"math/big"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// The methods of this file parse the keywords of one type each, and report whether a keyword is theirs.

// typeKeyword parses "type".
func (r *schemaReader) typeKeyword(_ *schemaNode, own *constraint, m member, path string) (bool, error) {
	if m.key != "type" {
		return false, nil
	}
	names, err := stringList(m.value)
	var one string
	if json.Unmarshal(m.value, &one) == nil {
		names, err = []string{one}, nil
	}
	if err != nil || len(names) == 0 {
		return true, schemaError(path, "must be a type or a list of types")
	}
	for _, name := range names {
		if typeNames[name] == 0 {
			return true, schemaError(path, "%q is not a type", name)
		}
		own.types |= typeNames[name]
	}
	return true, nil
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
func count(raw json.RawMessage, path string) (int, error) {
	value, err := decimal(raw)
	if err != nil || !value.IsInt() || value.Sign() < 0 || !value.Num().IsInt64() || value.Num().Int64() > 1<<30 {
		return 0, schemaError(path, "must be a whole number between 0 and %d", 1<<30)
	}
	return int(value.Num().Int64()), nil
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
func (r *schemaReader) stringKeyword(_ *schemaNode, own *constraint, m member, path string) (bool, error) {
	var err error
	switch m.key {
	case "minLength":
		own.strings.low, err = count(m.value, path)
	case "maxLength":
		own.strings.high, err = count(m.value, path)
	case "pattern", "format":
		err = readPattern(own, m, path)
	default:
		return false, nil
	}
	own.implied |= typeString
	return true, err
}

// readPattern parses "pattern" and "format".
func readPattern(own *constraint, m member, path string) error {
	var text string
	if err := json.Unmarshal(m.value, &text); err != nil {
		return schemaError(path, "must be a string")
	}
	if m.key == "format" {
		format, ok := formats[text]
		if !ok {
			return schemaError(path, "the format %q is not supported; there are %s", text, formatNames())
		}
		text = `^(?:` + format + `)$`
	}
	if _, err := parsePattern(text); err != nil {
		return schemaError(path, "%v", err)
	}
	own.strings.patterns = append(own.strings.patterns, text)
	return nil
}

// numberKeyword parses the keywords of numbers.
func (r *schemaReader) numberKeyword(_ *schemaNode, own *constraint, m member, path string) (bool, error) {
	switch m.key {
	case "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf":
	default:
		return false, nil
	}
	own.implied |= typeNumber
	value, err := decimal(m.value)
	if err != nil {
		return true, schemaError(path, "%v", err)
	}
	switch n := &own.numbers; m.key {
	case "minimum", "exclusiveMinimum":
		n.low = stricter(n.low, &bound{value, m.key != "minimum"}, -1)
	case "maximum", "exclusiveMaximum":
		n.high = stricter(n.high, &bound{value, m.key != "maximum"}, 1)
	case "multipleOf":
		if !value.IsInt() || value.Sign() <= 0 || value.Cmp(big.NewRat(maxMultiple, 1)) > 0 {
			return true, schemaError(path, "multipleOf is supported for whole numbers from 1 to %d", maxMultiple)
		}
		n.multiple = int(value.Num().Int64())
	}
	return true, nil
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
func (r *schemaReader) objectKeyword(_ *schemaNode, own *constraint, m member, path string) (bool, error) {
	switch m.key {
	case "properties", "required", "additionalProperties":
	default:
		return false, nil
	}
	own.implied |= typeObject
	if own.object == nil {
		own.object = &objectKeywords{properties: map[string]*schemaNode{}}
	}
	var err error
	switch m.key {
	case "properties":
		return true, r.properties(own.object, m.value, path)
	case "required":
		if own.object.required, err = stringList(m.value); err != nil {
			err = schemaError(path, "%v", err)
		}
	default:
		own.object.additional, err = r.node(path, m.value)
	}
	return true, err
}

// properties parses "properties".
func (r *schemaReader) properties(o *objectKeywords, raw json.RawMessage, path string) error {
	all, err := members(raw)
	if err != nil {
		return schemaError(path, "%v", err)
	}
	for _, m := range all {
		node, err := r.node(path+"/"+escapePointer(m.key), m.value)
		if err != nil {
			return err
		}
		o.names = append(o.names, m.key)
		o.properties[m.key] = node
	}
	return nil
}

// arrayKeyword parses the keywords of arrays.
func (r *schemaReader) arrayKeyword(_ *schemaNode, own *constraint, m member, path string) (bool, error) {
	if !slices.Contains([]string{"items", "prefixItems", "minItems", "maxItems"}, m.key) {
		return false, nil
	}
	own.implied |= typeArray
	if own.array == nil {
		own.array = &arrayKeywords{high: -1}
	}
	var err error
	switch a := own.array; m.key {
	case "prefixItems":
		a.prefix, err = r.list(m.value, path)
	case "minItems":
		a.low, err = count(m.value, path)
	case "maxItems":
		a.high, err = count(m.value, path)
	default:
		if kind(m.value) == '[' {
			return true, schemaError(path, "a list of schemas is written prefixItems since draft 2020-12")
		}
		a.items, err = r.node(path, m.value)
	}
	return true, err
}

// readValues parses "enum" and "const"; with both, their common values remain.
func readValues(values *constraint, m member, path string) error {
	list := []json.RawMessage{m.value}
	if m.key == "enum" {
		var err error
		if list, err = elements(m.value); err != nil {
			return schemaError(path, "%v", err)
		}
	}
	for i, raw := range list {
		if _, err := spell(raw, NoSpaces); err != nil {
			return schemaError(path+"/"+strconv.Itoa(i), "%v", err)
		}
	}
	if values.hasValues {
		list = commonValues(values.values, list)
	}
	values.values, values.hasValues = list, true
	return nil
}
