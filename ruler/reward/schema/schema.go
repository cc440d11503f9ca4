// Package schema scores JSON that a model wrote by a JSON Schema: draft 2020-12 or draft 7, as
// github.com/google/jsonschema-go implements them. It is apart from package reward because of that library.
package schema

import (
	"encoding/json"
	"fmt"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/goart-dev/art/ruler/reward"
)

// Schema is a JSON Schema that was read. It is safe for concurrent use.
type Schema struct {
	resolved *jsonschema.Resolved
}

// Parse reads a JSON Schema. References are of the form #, #/path or #anchor, and do not run in a circle. Patterns
// are regular expressions of Go, which need linear time.
func Parse(text json.RawMessage) (s *Schema, err error) {
	defer caught("read", &err)
	if err = checkRefs(text); err != nil {
		return nil, fmt.Errorf("schema: read: %w", err)
	}
	var parsed jsonschema.Schema
	var canonical []byte
	if err = json.Unmarshal(text, &parsed); err == nil {
		canonical, err = json.Marshal(&parsed) // the library reads keywords of any case, such as AnyOf
	}
	if err == nil {
		err = checkRefs(canonical)
	}
	var resolved *jsonschema.Resolved
	if err == nil {
		resolved, err = parsed.Resolve(nil)
	}
	if err != nil {
		return nil, fmt.Errorf("schema: read: %w", err)
	}
	return &Schema{resolved}, nil
}

// Check says what in a JSON value is against the schema; nil is nothing. Numbers are compared as float64.
func (s *Schema) Check(value json.RawMessage) (err error) {
	defer caught("check", &err)
	var v any
	if err := json.Unmarshal(value, &v); err != nil {
		return fmt.Errorf("schema: check: %w", err)
	}
	return s.resolved.Validate(v)
}

// caught makes an error of a panic in the library, which is given what a model wrote.
func caught(what string, err *error) {
	if r := recover(); r != nil {
		*err = fmt.Errorf("schema: %s: %v", what, r)
	}
}

// First returns 1 when the first JSON object of text is valid, else 0; see [reward.FirstJSON]. What stands around it
// is free.
func (s *Schema) First(text string) float64 {
	object, ok := reward.FirstJSON(text)
	return s.score(object, ok)
}

// Only returns 1 when text is nothing but a valid JSON object or array, a fence of Markdown aside, else 0; see
// [reward.OnlyJSON].
func (s *Schema) Only(text string) float64 {
	value, ok := reward.OnlyJSON(text)
	return s.score(value, ok)
}

// score is 1 for a valid value.
func (s *Schema) score(value json.RawMessage, ok bool) float64 {
	if ok && s.Check(value) == nil {
		return 1
	}
	return 0
}
