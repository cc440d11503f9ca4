// Package lint holds the project's own checks; go test ./internal/dev/lint runs them. They read the files themselves: a
// test that asks a command such as go list would be cached as passing when a file changes that it never opened.
package lint

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// module is the path of the module.
const module = "github.com/goart-dev/art"

// source is a file of the repository.
type source struct {
	path string // slashed, relative to the root of the repository
	data []byte
}

// pkg returns the folder of the file, relative to the root; "" is the root.
func (s source) pkg() string {
	if dir := path.Dir(s.path); dir != "." {
		return dir
	}
	return ""
}

// isTest reports whether the file is compiled for tests only.
func (s source) isTest() bool { return strings.HasSuffix(s.path, "_test.go") }

// goFiles returns the Go files of the module: without nested modules, testdata, and folders that the go command
// ignores.
func goFiles(root string) ([]source, error) {
	return readFiles(root, func(dir string) bool {
		name := filepath.Base(dir)
		_, err := os.Stat(filepath.Join(dir, "go.mod"))
		return err == nil || name == "testdata" || strings.HasPrefix(name, "_") || strings.HasPrefix(name, ".")
	}, func(file string) bool { return strings.HasSuffix(file, ".go") })
}

// allFiles returns the files of the repository, without ignored files and those of git itself.
func allFiles(root string) ([]source, error) {
	ignored := map[string]bool{".git": true, ".art": true, filepath.Join(".ci", "out"): true}
	return readFiles(root, func(dir string) bool {
		rel, err := filepath.Rel(root, dir)
		return err == nil && ignored[rel]
	}, func(file string) bool {
		gitFile := filepath.Base(file) == ".git" // of a worktree, in place of the folder
		return !gitFile && !strings.HasSuffix(file, ".test") && !strings.HasSuffix(file, ".prof")
	})
}

// readFiles reads the files below root, in lexical order.
func readFiles(root string, skip, want func(path string) bool) ([]source, error) {
	var files []source
	err := filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && file != root && skip(file):
			return fs.SkipDir
		case !d.Type().IsRegular() || !want(file):
			return nil
		}
		data, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, file)
		if err != nil {
			return err
		}
		files = append(files, source{path: filepath.ToSlash(rel), data: data})
		return nil
	})
	return files, err
}
