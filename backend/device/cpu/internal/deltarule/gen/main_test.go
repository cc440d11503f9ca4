package main

import (
	"os"
	"path/filepath"
	"testing"
)

// The files in the package are what the generator writes.
func TestFiles(t *testing.T) {
	for name, want := range files() {
		got, err := os.ReadFile(filepath.Join("..", name))
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != want {
			t.Errorf("%s differs from the generator's output: run go generate", name)
		}
	}
}
