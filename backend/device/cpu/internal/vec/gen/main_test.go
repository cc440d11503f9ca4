package main

import (
	"os"
	"path/filepath"
	"testing"
)

func TestFiles_AreCheckedIn(t *testing.T) {
	for name, want := range files() {
		got, err := os.ReadFile(filepath.Join("..", name))
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != want {
			t.Errorf("%s is not what the generator writes: run go generate in the folder above", name)
		}
	}
}
