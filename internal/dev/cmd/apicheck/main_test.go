package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const declarations = `package p

import "io"

const Limit = 5

type Number[T ~int | ~float64] struct{ Value T }

type Base struct{}

func (Base) Close() error { return nil }

type Options struct {
	Base
	Size   int ` + "`json:\"size\"`" + `
	hidden int
}

func (o *Options) Check(limit int) error { return nil }

type Reader interface{ Read(to io.Writer) error }

type Sealed interface {
	Name() string
	sealed()
}

func Open(path string, opts *Options) (r Reader, err error) { return nil, nil }
`

// write writes a module with one public and one internal package.
func write(t *testing.T, text string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range map[string]string{
		"go.mod": "module example.com/p\n\ngo 1.26\n", "p.go": text, "internal/q/q.go": "package q\n\nconst Gone = 1\n",
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// TestRun: what breaks a program that uses the module is an error that names it, and nothing else is.
func TestRun(t *testing.T) {
	file := filepath.Join(t.TempDir(), "api.txt")
	if err := run(write(t, declarations), file, true, nil); err != nil {
		t.Fatal(err)
	}
	api, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(api), "hidden") || strings.Contains(string(api), "Gone") {
		t.Errorf("names that programs cannot use:\n%s", api)
	}
	for _, c := range []struct{ name, from, to, gone string }{
		{"nothing", "", "", ""},
		{"parameter renamed", "limit int", "most int", ""},
		{"function added", "const Limit", "func New() {}\n\nconst Limit", ""},
		{"field added", "hidden int", "hidden int\n\tMore bool", ""},
		{"method of a sealed interface added", "sealed()", "sealed()\n\tMore()", ""},
		{"value", "Limit = 5", "Limit = 6", "const Limit untyped int = 5"},
		{"name gone", "Limit = 5", "limit = 5", "const Limit untyped int = 5"},
		{"constraint", "~int |", "~int8 |", "type Number[T ~int | ~float64] struct"},
		{"type of a field", "Size   int", "Size   int64", `type Options struct, Size int json:"size"`},
		{"name in JSON", `"size`, `"length`, `type Options struct, Size int json:"size"`},
		{"embedded", "\tBase\n", "", "method (Options) Close() error"},
		{"method gone", "Check(", "Test(", "method (*Options) Check(int) error"},
		{"parameter", "limit int", "limit int32", "method (*Options) Check(int) error"},
		{"method of an interface", "Read(to", "More()\n\tRead(to", "type Reader interface { Read(io.Writer) error }"},
		{"result", "(r Reader, err error)", "(r Sealed, err error)", "func Open(string, *Options) (Reader, error)"},
	} {
		var out bytes.Buffer
		err := run(write(t, strings.Replace(declarations, c.from, c.to, 1)), file, false, &out)
		if (err != nil) != (c.gone != "") {
			t.Errorf("%s: error %v\n%s", c.name, err, &out)
		}
		if c.gone != "" && !strings.Contains(out.String(), "- pkg example.com/p, "+c.gone+"\n") {
			t.Errorf("%s: want %q in\n%s", c.name, c.gone, &out)
		}
	}
}
