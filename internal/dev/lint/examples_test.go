package lint

import (
	"slices"
	"testing"
)

// TestExamples checks that each public package shows its first use in an Example.
func TestExamples(t *testing.T) {
	for _, problem := range checkExamples(mustGoFiles(t)) {
		t.Error(problem)
	}
}

// TestCheckExamples shows the checker what it must find and what it must not.
func TestCheckExamples(t *testing.T) {
	files := []source{
		{"good/a.go", []byte("package good\n")},
		{"good/a_test.go", []byte("package good_test\n\nfunc TestA() {}\n")},
		{"good/b_test.go", []byte("package good_test\n\nfunc ExampleF() {}\n")},
		{"bad/a.go", []byte("package bad\n\nfunc Example() {}\n")},
		{"bad/a_test.go", []byte("package bad\n\nfunc TestA() {}\n\nfunc (t) Example() {}\n\nvar Example int\n")},
		{"onlytests/a_test.go", []byte("package onlytests\n\nfunc TestA() {}\n")},
		{"tool/a.go", []byte("package main\n")},
		{"internal/a/a.go", []byte("package a\n")},
		{"good/internal/a/a.go", []byte("package a\n")},
		{"examples/a/b/b.go", []byte("package b\n")},
		{"cmd/a/b.go", []byte("package b\n")},
	}
	want := []string{
		`package "bad" has no Example; show in example_test.go, in 10 to 30 lines, what a newcomer does first`,
	}
	if got := checkExamples(files); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
