// Package jsonschema is what the readers of JSON Schemas have in common: sets of types, and references.
package jsonschema

import (
	"fmt"
	"net/url"
	"strings"
)

// Types is a set of JSON types. A number is an integer or a fraction, so that "integer" is a part of "number".
type Types uint8

// The types, and sets of them.
const (
	Null Types = 1 << iota
	Boolean
	Integer
	Fraction
	String
	Array
	Object
	Number = Integer | Fraction
	Any    = Null | Boolean | Number | String | Array | Object
)

// TypesByName are the values of the keyword "type".
var TypesByName = map[string]Types{
	"null": Null, "boolean": Boolean, "integer": Integer, "number": Number, "string": String, "array": Array,
	"object": Object,
}

// ParseRef returns the names of the members, and the indices of the elements, that lead from the root of a document to
// where a reference such as "#/$defs/name" points; none for "#". Source: RFC 6901, section 6.
func ParseRef(ref string) ([]string, error) {
	pointer, local := strings.CutPrefix(ref, "#")
	pointer, err := url.PathUnescape(pointer)
	if !local || err != nil || pointer != "" && pointer[0] != '/' {
		return nil, fmt.Errorf("%q: only references like #/$defs/name are supported", ref)
	}
	if pointer == "" {
		return nil, nil
	}
	names := strings.Split(pointer[1:], "/")
	for i, name := range names {
		names[i] = strings.NewReplacer("~1", "/", "~0", "~").Replace(name)
	}
	return names, nil
}
