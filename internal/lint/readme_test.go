package lint

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
)

// TestReadme checks that the programs of the README and of the pages in docs compile and pass go vet, as a program
// outside of this repository would: without its internal packages. A program that says what it prints prints that.
func TestReadme(t *testing.T) {
	pages, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	readme := filepath.Join(root, "README.md")
	for _, page := range append(pages, readme) {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		found := programs(string(text))
		if len(found) == 0 && page == readme {
			t.Fatal("README.md has no Go block with a whole program (package main); a newcomer needs one")
		}
		for _, program := range found {
			file := filepath.Join(t.TempDir(), "main.go")
			if err := os.WriteFile(file, []byte(program), 0o600); err != nil {
				t.Fatal(err)
			}
			goTool(t, program, "vet", file)
			if want, ok := output(program); ok {
				if got := goTool(t, program, "run", file); trimLines(got) != want {
					t.Errorf("prints\n%s\nwant\n%s\n%s", got, want, program)
				}
			}
		}
	}
}

// goTool runs the go command on a program, and returns what it prints.
func goTool(t *testing.T, program string, args ...string) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), "go", args...)
	command.Dir = root
	out, err := command.CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s\n%s", err, out, program)
	}
	return string(out)
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

// TestOutput checks how the expected output of a program is found.
func TestOutput(t *testing.T) {
	const program = "package main\n\nfunc main() {\n\tfmt.Println(1)\n\t// Output:\n\t// 1  x\n\t//\n\t// 2\n}\n"
	if got, ok := output(program); !ok || got != "1  x\n\n2" {
		t.Errorf("got %q, %v", got, ok)
	}
	if got, ok := output("package main\n"); ok {
		t.Errorf("got %q of a program that says nothing", got)
	}
}
