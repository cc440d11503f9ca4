package jinja

import (
	"os"
	"os/exec"
	"testing"
)

// TestCaseTables_Generated: casetables.go is what make_casetables.py writes. It needs Python 3.11, in ART_PYTHON311.
func TestCaseTables_Generated(t *testing.T) {
	python := os.Getenv("ART_PYTHON311")
	if python == "" {
		t.Skip("set ART_PYTHON311 to a Python 3.11")
	}
	want, err := exec.CommandContext(t.Context(), python, "make_casetables.py", "-print").Output()
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile("casetables.go")
	if err != nil {
		t.Fatal(err)
	}
	if string(want) != string(got) {
		t.Error("casetables.go differs from the output of make_casetables.py: run it")
	}
}
