package lint

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
)

// TestReadme checks that the programs of the README compile and pass go vet, as a program outside of this repository
// would: without its internal packages.
func TestReadme(t *testing.T) {
	readme, err := os.ReadFile(filepath.Join(root, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	found := programs(string(readme))
	if len(found) == 0 {
		t.Fatal("README.md has no Go block with a whole program (package main); a newcomer needs one")
	}
	for _, program := range found {
		file := filepath.Join(t.TempDir(), "main.go")
		if err := os.WriteFile(file, []byte(program), 0o600); err != nil {
			t.Fatal(err)
		}
		vet := exec.CommandContext(t.Context(), "go", "vet", file)
		vet.Dir = root
		if out, err := vet.CombinedOutput(); err != nil {
			t.Errorf("%v\n%s\n%s", err, out, program)
		}
	}
}

// TestPrograms checks which blocks are programs.
func TestPrograms(t *testing.T) {
	const text = "# Title\n\n```go\npackage main\n\nfunc main() {}\n```\n\nwords\n\n```go\nx := 1\n```\n\n" +
		"```sh\npackage main\n```\n\n```go\n// Doc.\npackage main\n```\n\n```go\npackage mainly\n```\n"
	want := []string{"package main\n\nfunc main() {}\n", "// Doc.\npackage main\n"}
	if got := programs(text); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
