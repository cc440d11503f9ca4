package lint

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestReadme checks that the programs of the README and of the pages in docs compile and pass go vet, as a program
// outside of this repository would: without its internal packages. A program that says what it prints prints that.
func TestReadme(t *testing.T) {
	found := documentedPrograms(t)
	dir := outside(t, found)
	goTool(t, dir, "vet", "./...")
	bin, build := t.TempDir(), []string{}
	for _, p := range found {
		if _, ok := output(p.text); ok {
			build = append(build, "./"+p.name)
		}
	}
	goTool(t, dir, append([]string{"build", "-ldflags=-s -w", "-o", bin + string(filepath.Separator)}, build...)...)
	for _, p := range found {
		want, ok := output(p.text)
		if !ok {
			continue
		}
		command := exec.CommandContext(t.Context(), filepath.Join(bin, p.name))
		command.Dir = root
		var log strings.Builder // warnings go there
		command.Stderr = &log
		got, err := command.Output()
		if err != nil || trimLines(string(got)) != want {
			t.Errorf("%s: %v, prints\n%s\nwant\n%s\nlogs\n%s", p.name, err, got, want, &log)
		}
	}
}

// TestReadme_GoVersion checks that the pages for newcomers name the version of Go that go.mod wants.
func TestReadme_GoVersion(t *testing.T) {
	mod, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	want := regexp.MustCompile(`(?m)^go (\S+)$`).FindSubmatch(mod)[1]
	for _, page := range []string{"README.md", "CONTRIBUTING.md", "docs/quickstart.md"} {
		text, err := os.ReadFile(filepath.Join(root, page))
		if err != nil {
			t.Fatal(err)
		}
		found := regexp.MustCompile(`Go (1\.\d+[.\d]*\d) or newer`).FindAllSubmatch(text, -1)
		if len(found) != 1 || string(found[0][1]) != string(want) {
			t.Errorf("%s says %q, want \"Go %s or newer\" once", page, found, want)
		}
	}
}

// program is a whole program of a page, by the name of its folder, or a file of one, by its path.
type program struct{ name, text string }

// documentedPrograms returns the whole programs of README.md and docs.
func documentedPrograms(t *testing.T) []program {
	t.Helper()
	var found []program
	for _, page := range documentedPages(t) {
		texts := programs(page.text)
		if len(texts) == 0 && page.name == "README" {
			t.Fatal("README.md has no Go block with a whole program (package main); a newcomer needs one")
		}
		for _, text := range texts {
			found = append(found, program{fmt.Sprintf("%s-%d", page.name, len(found)), text})
		}
	}
	return found
}

// outside writes the programs into a module of their own that uses this one, a folder each: so one go command checks
// all of them.
func outside(t *testing.T, found []program) (dir string) {
	t.Helper()
	dir = t.TempDir()
	checkout, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	mod, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	sum, err := os.ReadFile(filepath.Join(root, "go.sum"))
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Replace(string(mod), "module "+module, "module example.test/documents", 1)
	text += fmt.Sprintf("\nrequire %s v0.0.0\n\nreplace %[1]s => %s\n", module, checkout)
	files := map[string]string{"go.mod": text, "go.sum": string(sum)}
	for _, p := range found {
		path := p.name
		if filepath.Ext(path) != ".go" {
			path = filepath.Join(path, "main.go")
		}
		files[path] = p.text
	}
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// goTool runs the go command in a folder.
func goTool(t *testing.T, dir string, args ...string) {
	t.Helper()
	command := exec.CommandContext(t.Context(), "go", args...)
	command.Dir = dir
	command.Env = append(os.Environ(), "GOWORK=off")
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("go %s: %v\n%s", args[0], err, out)
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
