// Package jsonpointer reads references within a JSON document, such as the $ref of a JSON Schema.
package jsonpointer

import (
	"fmt"
	"net/url"
	"strings"
)

// Parse returns the names of the members, and the indices of the elements, that lead from the root of a document to
// where a reference such as "#/$defs/name" points; none for "#". Source: RFC 6901, section 6.
func Parse(ref string) ([]string, error) {
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
