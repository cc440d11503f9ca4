package mcp

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
)

// schemaKeys are the keys of a JSON Schema in the order in which people write them, which is that of chat templates
// and of what models are trained on. Others follow in the order of the alphabet.
var schemaKeys = []string{"type", "description", "enum", "items", "properties", "required"}

// silent tells whether a key of a schema says nothing to a model.
func silent(key string, value any) bool {
	_, isBool := value.(bool)
	return key == "$schema" || key == "$id" || key == "title" || key == "additionalProperties" && isBool
}

// orderedSchema writes the schema of a tool's arguments with its keys in the usual order; properties are in the order
// of the list of required ones, then of the alphabet. It is the same text in every process.
func orderedSchema(schema json.RawMessage) (json.RawMessage, error) {
	var object map[string]any
	if err := json.Unmarshal(schema, &object); err != nil || object == nil {
		return nil, fmt.Errorf("it is no JSON object: %.100s", schema)
	}
	if kind := object["type"]; kind != nil && kind != "object" {
		return nil, fmt.Errorf("its type is %v, want object", kind)
	}
	var b bytes.Buffer
	err := writeSchema(&b, object, 0)
	return b.Bytes(), err
}

// maxDepth bounds how deep schemas are nested.
const maxDepth = 64

// writeSchema writes a value of a schema: an object is a schema itself.
func writeSchema(b *bytes.Buffer, value any, depth int) error {
	if depth > maxDepth {
		return errors.New("it is nested too deep")
	}
	switch v := value.(type) {
	case map[string]any:
		keys := slices.DeleteFunc(keysInOrder(v, schemaKeys), func(key string) bool { return silent(key, v[key]) })
		return writeObject(b, v, keys, depth)
	case []any:
		b.WriteByte('[')
		for i, item := range v {
			if i > 0 {
				b.WriteString(", ")
			}
			if err := writeSchema(b, item, depth+1); err != nil {
				return err
			}
		}
		b.WriteByte(']')
		return nil
	}
	text, err := json.Marshal(value)
	b.Write(text)
	return err
}

// writeObject writes the given keys of an object.
func writeObject(b *bytes.Buffer, object map[string]any, keys []string, depth int) error {
	b.WriteByte('{')
	for i, key := range keys {
		if i > 0 {
			b.WriteString(", ")
		}
		name, err := json.Marshal(key)
		if err != nil {
			return err
		}
		b.Write(name)
		b.WriteString(": ")
		properties, ok := object[key].(map[string]any)
		if key == "properties" && ok {
			err = writeObject(b, properties, keysInOrder(properties, required(object)), depth+1)
		} else {
			err = writeSchema(b, object[key], depth+1)
		}
		if err != nil {
			return err
		}
	}
	b.WriteByte('}')
	return nil
}

// keysInOrder returns the keys of an object: the given ones first, then the others in the order of the alphabet.
func keysInOrder(object map[string]any, first []string) []string {
	var keys []string
	for _, key := range first {
		if _, ok := object[key]; ok && !slices.Contains(keys, key) {
			keys = append(keys, key)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(object)) {
		if !slices.Contains(keys, key) {
			keys = append(keys, key)
		}
	}
	return keys
}

// required returns the names that a schema requires, in its order.
func required(schema map[string]any) []string {
	list, _ := schema["required"].([]any)
	var names []string
	for _, item := range list {
		if name, ok := item.(string); ok {
			names = append(names, name)
		}
	}
	return names
}
