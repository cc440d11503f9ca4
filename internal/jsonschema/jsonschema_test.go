package jsonschema

import (
	"slices"
	"testing"
)

func TestParseRef_Escapes(t *testing.T) {
	for ref, want := range map[string][]string{
		"#": nil, "#/": {""}, "#/$defs/Place": {"$defs", "Place"}, "#/a~1b/~01/0": {"a/b", "~1", "0"}, "#/a%20b%2fc": {"a b", "c"},
	} {
		if got, err := ParseRef(ref); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %q, %v, want %q", ref, got, err, want)
		}
	}
	for _, ref := range []string{"", "Place", "#Place", "#/%zz", "other.json#/a"} {
		if got, err := ParseRef(ref); err == nil {
			t.Errorf("%q is read as %q", ref, got)
		}
	}
}
