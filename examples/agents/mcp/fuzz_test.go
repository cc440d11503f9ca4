package mcp

import (
	"bytes"
	"encoding/json"
	"reflect"
	"testing"
	"unicode/utf8"
)

// A schema in the usual order says what it said, but for keys that say nothing, and is its own usual order.
func FuzzSchema(f *testing.F) {
	f.Add([]byte(`{"required":["b"],"type":"object",
		"properties":{"a":{"type":"string","title":"A"},"b":{"enum":[1,{}]}}}`))
	f.Add([]byte(`{"properties":{"title":{"type":"object","additionalProperties":{"type":"string"}}},"$defs":{"x":[]}}`))
	f.Fuzz(func(t *testing.T, schema []byte) {
		ordered, err := orderedSchema(schema)
		if err != nil {
			return
		}
		var before, after any
		if json.Unmarshal(schema, &before) != nil || json.Unmarshal(ordered, &after) != nil {
			t.Fatalf("%s became %s", schema, ordered)
		}
		silent := bytes.Contains(schema, []byte("title")) || bytes.Contains(schema, []byte(`\u`)) ||
			bytes.ContainsAny(schema, "$") || bytes.Contains(schema, []byte("additional"))
		if !silent && !reflect.DeepEqual(before, after) {
			t.Fatalf("%s became %s", schema, ordered)
		}
		again, err := orderedSchema(ordered)
		if err != nil || !bytes.Equal(again, ordered) {
			t.Fatalf("%s became %s, %v", ordered, again, err)
		}
	})
}

func FuzzCut(f *testing.F) {
	f.Add("abc\xff", 2)
	f.Fuzz(func(t *testing.T, text string, most int) {
		most &= 0xfff
		got := cut(text, most)
		if !utf8.ValidString(got) || utf8.RuneCountInString(got) > max(most, 40) {
			t.Fatalf("%q", got)
		}
	})
}
