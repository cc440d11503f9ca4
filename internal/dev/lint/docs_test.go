package lint

import (
	"slices"
	"testing"
)

// TestDocs checks that packages and exported names are documented.
func TestDocs(t *testing.T) {
	for _, problem := range checkDocs(mustGoFiles(t)) {
		t.Error(problem)
	}
}

// TestCheckDocs shows the checker what it must find and what it must not.
func TestCheckDocs(t *testing.T) {
	files := []source{
		{"good/a.go", []byte(`// Package good is documented.
package good

// F does.
func F() {}

// T is.
type T struct{}

// M does.
func (t *T) M() {}

func (h hidden) Exported() {}

type hidden[K any] struct{}

func (h *hidden[K]) Other() {}

// These are.
const (
	A = 1
	B = 2
)

var C = 3 // on the line

func small() {}
`)},
		{"good/b.go", []byte("package good\n\nfunc Missing() {}\n")},
		{"good/c_test.go", []byte("package good\n\nfunc TestHelper() {}\n")},
		{"bad/a.go", []byte(`// Some words.
package bad

type T struct{}

func (t T) M() {}

type (
	// U is.
	U int
	V int
)

const W = 1

var X, y = 1, 2
`)},
		{"cmd/a.go", []byte("package main\n")},
		{"tool/a.go", []byte("// Tool does.\npackage main\n")},
	}
	want := []string{
		`bad/a.go: M is exported and has no doc comment`,
		`bad/a.go: T is exported and has no doc comment`,
		`bad/a.go: V is exported and has no doc comment`,
		`bad/a.go: W is exported and has no doc comment`,
		`bad/a.go: X is exported and has no doc comment`,
		`bad/a.go: package "bad" has no doc comment that begins with "Package bad"`,
		`cmd/a.go: package "cmd" has no doc comment that begins with ""`,
		`good/b.go: Missing is exported and has no doc comment`,
	}
	if got := checkDocs(files); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
