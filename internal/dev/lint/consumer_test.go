package lint

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// consumer is a program outside of this module that imports art alone.
const consumer = `package main

import "` + module + `"

func main() { println(art.NewModel("m", nil).Name()) }
`

// TestConsumer checks that a module which imports only art needs no other module: its go mod tidy and go build work
// with an empty module cache and a proxy that serves nothing but art.
func TestConsumer(t *testing.T) {
	skipUnlessCI(t)
	cache, out, err := buildConsumer(t, mustGoFiles(t))
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if got := cachedModules(t, cache); !slices.Equal(got, []string{module}) {
		t.Errorf("the module cache holds %q, want art alone", got)
	}
}

// TestConsumer_NoticesLeaks checks that [TestConsumer] would fail: one test file at the root that imports GoMLX makes
// the go mod tidy of every user download it.
func TestConsumer_NoticesLeaks(t *testing.T) {
	skipUnlessCI(t)
	leak := source{"leak_test.go", []byte("package art_test\n\nimport _ \"" + gomlx[0] + "/core/graph\"\n")}
	_, out, err := buildConsumer(t, append(mustGoFiles(t), leak))
	if err == nil || !strings.Contains(out, gomlx[0]) {
		t.Errorf("got %v, want that GoMLX cannot be found\n%s", err, out)
	}
}

// skipUnlessCI skips a test that runs the go command many times, with -short and outside of CI.
func skipUnlessCI(t *testing.T) {
	t.Helper()
	if testing.Short() && os.Getenv("CI") == "" {
		t.Skip("runs go mod tidy and go build; leave out -short")
	}
}

// buildConsumer packs files as the module art, and tidies and builds the consumer with it. It returns the module cache,
// and what the go command printed.
func buildConsumer(t *testing.T, files []source) (cache, out string, err error) {
	t.Helper()
	proxy, work := t.TempDir(), t.TempDir()
	cache = t.TempDir()
	writeProxy(t, proxy, files)
	mod := fmt.Sprintf("module example.test/consumer\n\ngo 1.26\n\nrequire %s %s\n", module, version)
	for name, text := range map[string]string{"go.mod": mod, "main.go": consumer} {
		if err := os.WriteFile(filepath.Join(work, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	env := append(os.Environ(), "GOPROXY=file://"+filepath.ToSlash(proxy), "GOMODCACHE="+cache,
		"GOFLAGS=-mod=mod -modcacherw", "GOSUMDB=off", "GONOPROXY=none", "GOPRIVATE=", "GOWORK=off", "GOTOOLCHAIN=local",
		"GO111MODULE=on")
	for _, args := range [][]string{{"mod", "tidy"}, {"build", "-o", os.DevNull, "."}} {
		command := exec.CommandContext(t.Context(), "go", args...)
		command.Dir, command.Env = work, env
		text, err := command.CombinedOutput()
		out += string(text)
		if err != nil {
			return cache, out, fmt.Errorf("go %s: %w", strings.Join(args, " "), err)
		}
	}
	return cache, out, nil
}

// cachedModules returns the modules of which a module cache holds anything.
func cachedModules(t *testing.T, cache string) []string {
	t.Helper()
	downloads := filepath.Join(cache, "cache", "download")
	var modules []string
	err := filepath.WalkDir(downloads, func(dir string, d fs.DirEntry, err error) error {
		if err != nil || d.Name() != "@v" {
			return err
		}
		rel, err := filepath.Rel(downloads, filepath.Dir(dir))
		modules = append(modules, filepath.ToSlash(rel))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return modules
}
