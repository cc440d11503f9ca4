package lint

import (
	"slices"
	"testing"
)

// TestRendering checks that doc comments are shown as they were meant.
func TestRendering(t *testing.T) {
	for _, problem := range checkRendering(mustGoFiles(t)) {
		t.Error(problem)
	}
}

// TestCheckRendering shows the checker what it must find and what it must not.
func TestCheckRendering(t *testing.T) {
	files := []source{
		{"a/a.go", []byte(`// Package a has [Type], [Type.M], [*Type], [b.F], [b.Set.Field], [io/fs.ErrNotExist] and [fs.ErrNotExist].
//
//	x [N, V] = b.New[Type](y) of [Type]
//
// [Missing] is not, shapes are [N] and [B, Wide]. A list is
//
//   - an item with [b.Gone];
//   - another.
//
// This is none:
// - one
package a

import "github.com/goart-dev/art/b"

// Type has [Type.Field] and [Type.Gone].
type Type struct{ Field int }

// M is of [Type].
func (t *Type) M() { b.F() }
`)},
		{"b/b.go", []byte(`// Package b is.
package b

// F is of [T].
func F() {}

// Set is.
type Set[K any] struct{ Field K }
`)},
		{"b/b_test.go", []byte("package b\n\n// G is [Nothing].\nfunc G() {}\n")},
	}
	const link = "does not resolve; import the package or write its path"
	want := []string{
		`package "a", the package: "[fs.ErrNotExist]" ` + link,
		`package "a", the package: "[Type]" is in a block of code`,
		`package "a", the package: "[Missing]" ` + link,
		`package "a", the package: "- one" is an item of a list that is not indented`,
		`package "a", the package: "Gone" does not exist in github.com/goart-dev/art/b`,
		`package "a", Type: "[Type.Gone]" ` + link,
	}
	if got := checkRendering(files); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
