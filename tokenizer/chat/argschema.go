package chat

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/internal/jsonpointer"
)

// typeSet is a set of the types of JSON Schema. A number is an integer or a fraction.
type typeSet uint8

const (
	typeNull typeSet = 1 << iota
	typeBoolean
	typeInteger
	typeFraction
	typeString
	typeArray
	typeObject
)

var typeNames = map[string]typeSet{
	"null": typeNull, "boolean": typeBoolean, "integer": typeInteger, "number": typeInteger | typeFraction,
	"string": typeString, "array": typeArray, "object": typeObject,
}

// impliedTypes are the types of the values that a keyword constrains: what a schema without "type" means.
var impliedTypes = map[string]typeSet{
	"properties": typeObject, "required": typeObject, "additionalProperties": typeObject,
	"items": typeArray, "prefixItems": typeArray,
	"minimum": typeInteger | typeFraction, "maximum": typeInteger | typeFraction, "multipleOf": typeInteger | typeFraction,
	"exclusiveMinimum": typeInteger | typeFraction, "exclusiveMaximum": typeInteger | typeFraction,
}

// valueTypes is which values a schema allows, as far as types, enum and const tell.
type valueTypes struct {
	types  typeSet
	values map[string]typeSet // further values, as [canonical] writes them, with their types
	any    bool               // the schema allows everything; types and values are hints
}

// of returns the types of all values.
func (v valueTypes) of() typeSet {
	all := v.types
	for _, of := range v.values {
		all |= of
	}
	return all
}

// or returns what one of two schemas allows.
func (v valueTypes) or(w valueTypes) valueTypes {
	values := map[string]typeSet{}
	maps.Copy(values, v.values)
	maps.Copy(values, w.values)
	return valueTypes{v.types | w.types, values, v.any || w.any}
}

// and returns what both of two schemas allow.
func (v valueTypes) and(w valueTypes) valueTypes {
	switch {
	case v.any && w.any:
		return v.or(w)
	case v.any:
		return w
	case w.any:
		return v
	}
	both := valueTypes{types: v.types & w.types, values: map[string]typeSet{}}
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
		out.types |= typeNull
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
	names, err := jsonpointer.Parse(ref)
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
		out.types |= typeNames[text]
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
		members := valueTypes{values: map[string]typeSet{}}
		for _, member := range list {
			text, of := canonical(member)
			members.values[text] = of
		}
		out = out.and(members)
	}
	return out
}

// canonical writes a value so that equal ones have the same text, and returns its type.
func canonical(v any) (text string, of typeSet) {
	data, err := json.Marshal(v)
	if err != nil {
		panic("chat: " + err.Error()) // it was JSON
	}
	text, of = string(data), jsonType(string(data))
	switch of {
	case typeInteger:
		text = wholeNumber(text)
	case typeString:
		text = quote(v.(string))
	}
	return text, of
}
