package lint

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// fragmentPaths are the packages that the fragments of the pages use.
var fragmentPaths = map[string]string{
	"context": "context", "fmt": "fmt", "http": "net/http", "io": "io", "os": "os", "strings": "strings", "testing": "testing",
	"art": module, "credit": module + "/grpo/credit",
	"agents": module + "/examples/agents", "auto": module + "/examples/agents/auto",
	"backendtest": module + "/backend/backendtest", "dash": module + "/backend/dash", "hosted": module + "/backend/hosted",
	"local": module + "/backend/local", "mcp": module + "/examples/agents/mcp", "openai": module + "/backend/openai",
	"publish": module + "/backend/publish", "ruler": module + "/ruler", "server": module + "/backend/server",
	"tensorboard": module + "/backend/track/tensorboard", "tinker": module + "/backend/tinker", "wandb": module + "/backend/wandb",
}

// fragmentNames declares what the fragments of the pages take for granted.
const fragmentNames = `package main

import (
	"context"
	"io"
	"net/http"
	"sync/atomic"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/hosted"
	"github.com/goart-dev/art/backend/local"
)

var (
	ctx                                  context.Context
	err                                  error
	model, base, writer, judge, referee  *art.Model
	groups                               []*art.TrajectoryGroup
	scenarios                            []string
	play                                 func(context.Context, string) (*art.Trajectory, error)
	polite, rude                         *art.Trajectory
	rollouts                             art.GroupSource
	backend                              *hosted.Backend
	key                                  string
	mux                                  *http.ServeMux
	file                                 io.Writer
)

type counting struct {
	*local.Backend
	tokens atomic.Int64
}

func main() {}
`

// TestFragments checks that the Go code of the pages that is no whole program compiles, and passes go vet.
func TestFragments(t *testing.T) {
	found := []program{{"fragments", fragmentNames}}
	for _, page := range documentedPages(t) {
		for i, fragment := range fragments(page.text) {
			text, err := fragmentFile(fragment, fragmentPaths)
			if err != nil {
				t.Errorf("%s: %v in\n%s", page.name, err, fragment)
				continue
			}
			found = append(found, program{filepath.Join("fragments", fmt.Sprintf("%s%d.go", page.name, i)), text})
		}
	}
	goTool(t, outside(t, found), "vet", "./...")
}

// TestHostedCode checks that code that names a model behind an API, in a page or a doc comment, is that of a test,
// which runs it: those in backend answer as the API does, and refuse a model that it does not have.
func TestHostedCode(t *testing.T) {
	files, err := allFiles(root)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string][]string{} // code by the place that has it
	for _, page := range documentedPages(t) {
		found[page.name] = append(programs(page.text), fragments(page.text)...)
	}
	var bodies []string
	for _, file := range files {
		if !strings.HasSuffix(file.path, ".go") || strings.Contains(file.path, "testdata/") {
			continue
		}
		if file.isTest() {
			texts, err := testBodies(file)
			if err != nil {
				t.Fatal(err)
			}
			bodies = append(bodies, texts...)
		} else if found[file.path], err = commentCode(file); err != nil {
			t.Fatal(err)
		}
	}
	n := 0
	for place, list := range found {
		for _, code := range list {
			if !hostedCode.MatchString(code) {
				continue
			}
			n++
			if !slices.ContainsFunc(bodies, func(body string) bool { return excerpt(code, body) }) {
				t.Errorf("%s: no test runs this code, line by line; write one\n%s", place, code)
			}
		}
	}
	if n < 7 {
		t.Errorf("%d pieces of code were found", n)
	}
}

// documentedPages returns README.md and the pages in docs, by names such as README and docs-judging.
func documentedPages(t *testing.T) []program {
	t.Helper()
	names, err := fs.Glob(os.DirFS(root), "docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	var pages []program
	for _, name := range append(names, "README.md") {
		text, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		pages = append(pages, program{strings.ReplaceAll(strings.TrimSuffix(name, ".md"), "/", "-"), string(text)})
	}
	return pages
}

// TestExcerpt checks what counts as an excerpt.
func TestExcerpt(t *testing.T) {
	const body = "{\n\ta,  err := b() // c\n\tcheck(err)\n\n\td()\n}"
	for code, want := range map[string]bool{
		"a, err := b() // c\nd()\n": true, "d()": true, "a, err := b()": false, "d": false, "d()\na, err := b() // c": false,
	} {
		if got := excerpt(code, body); got != want {
			t.Errorf("%q: %v", code, got)
		}
	}
}

// TestHostedCode_Pattern checks which code names a model behind an API.
func TestHostedCode_Pattern(t *testing.T) {
	for code, want := range map[string]bool{
		`b, err := openai.Open(ctx, nil)`: true, `art.NewModel("gpt-5.4", nil)`: true, `{Base: "claude-sonnet-4-5"}`: true,
		`local.Open(ctx, nil)`: false, `art.NewModel("judge", nil)`: false, `{Base: "Qwen/Qwen3-0.6B"}`: false,
	} {
		if got := hostedCode.MatchString(code); got != want {
			t.Errorf("%q: %v", code, got)
		}
	}
}
