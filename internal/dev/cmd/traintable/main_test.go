package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A stand-in for the command art answers by its flags: 1,000 tokens a second for each answer of a group.
const standIn = `#!/bin/sh
while [ $# -gt 0 ]; do
	[ "$1" = --group-size ] && size=$2
	shift
done
echo "{\"train\": {\"shared\": {\"tokens_per_s\": ${size}000, \"computed\": 7}}}"
`

// TestSweep: each cell is that of its length and size, and steps that are too large are left out.
func TestSweep(t *testing.T) {
	if _, err := os.Stat("/bin/sh"); err != nil {
		t.Skip("the stand-in is a shell script: ", err)
	}
	dir := t.TempDir()
	s := sweep{art: filepath.Join(dir, "art"), shape: "small", lengths: []int{128, 512}, sizes: []int{2, 8}, most: 2000}
	if err := os.WriteFile(s.art, []byte(standIn), 0o755); err != nil {
		t.Fatal(err)
	}
	cells, err := s.run(os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	if err := s.write(&b, cells); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(b.String(), "\n")
	if len(cells) != 3 || !strings.HasPrefix(lines[2], "| 128 | 2000, ") || !strings.Contains(lines[2], "| 8000, ") ||
		!strings.HasPrefix(lines[3], "| 512 | 2000, ") || !strings.HasSuffix(lines[3], "|  |") {
		t.Errorf("%d cells:\n%s", len(cells), b.String())
	}
	if err := s.plot(dir, cells); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"train-speed.svg", "train-memory.svg"} {
		if content, err := os.ReadFile(filepath.Join(dir, name)); err != nil || !strings.Contains(string(content), "<svg") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestNumbers(t *testing.T) {
	if got, err := numbers("128,512"); err != nil || len(got) != 2 || got[1] != 512 {
		t.Errorf("%v, %v", got, err)
	}
	for _, list := range []string{"", "1", "2,x", "2,"} {
		if got, err := numbers(list); err == nil {
			t.Errorf("%q: %v", list, got)
		}
	}
}
