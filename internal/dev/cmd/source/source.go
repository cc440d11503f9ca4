// Package source checks the types of packages from their source. It compiles nothing, so that a module with all that it
// imports takes seconds on any platform, where go vet and go list -export compile the dependencies for each first.
package source

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Package is what go list prints of a package, and its types.
type Package struct {
	ImportPath, Dir, Name, ForTest string
	GoFiles                        []string
	ImportMap                      map[string]string // from what the source says to an ImportPath
	Module                         *struct {
		GoVersion string
		Main      bool
	}
	Error *struct{ Err string }

	Types *types.Package
	Errs  []error // of a package of the module only: what is wrong with a dependency shows where it is used
}

// Own reports whether the package belongs to the module that was loaded, rather than to a dependency.
func (p *Package) Own() bool { return p.Module != nil && p.Module.Main }

// path returns the import path without the test that the package is compiled for.
func (p *Package) path() string {
	path, _, _ := strings.Cut(p.ImportPath, " ")
	return path
}

// Loader parses each file once, whatever number of tests and platforms compile it.
type Loader struct {
	positions *token.FileSet
	parsed    map[string]*ast.File
}

// NewLoader returns a loader that has parsed nothing.
func NewLoader() *Loader { return &Loader{token.NewFileSet(), map[string]*ast.File{}} }

// Load checks the packages of the module in a folder and all that they import, without cgo and for the processor and
// system that GOARCH and GOOS name; with their tests if asked.
func (l *Loader) Load(dir, goos, goarch string, tests bool) ([]*Package, error) {
	all, err := list(dir, goos, goarch, tests)
	if err != nil {
		return nil, err
	}
	sizes := types.SizesFor("gc", goarch)
	checked := map[string]*types.Package{"unsafe": types.Unsafe}
	for _, p := range all {
		// The main function of a test is made by go test; and unsafe has no source.
		if p.ImportPath == "unsafe" || strings.HasSuffix(p.ImportPath, ".test") {
			continue
		}
		if err := l.check(p, sizes, checked); err != nil {
			return nil, err
		}
		checked[p.ImportPath] = p.Types
	}
	return all, nil
}

// list returns the packages of a module, and all that they import, each behind its imports.
func list(dir, goos, goarch string, tests bool) ([]*Package, error) {
	cmd := exec.Command("go", "list", "-deps", fmt.Sprintf("-test=%t", tests),
		"-json=ImportPath,Dir,Name,ForTest,GoFiles,ImportMap,Module,Error", "./...")
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "CGO_ENABLED=0", "GOOS="+goos, "GOARCH="+goarch)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w\n%s", err, stderr.String())
	}
	var all []*Package
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		p := new(Package)
		switch err := d.Decode(p); {
		case errors.Is(err, io.EOF):
			return all, nil
		case err != nil:
			return nil, err
		case p.Error != nil:
			return nil, fmt.Errorf("%s: %s", p.ImportPath, p.Error.Err)
		}
		all = append(all, p)
	}
}

// check sets the types and the errors of a package whose imports are checked.
func (l *Loader) check(p *Package, sizes types.Sizes, checked map[string]*types.Package) error {
	files, err := l.parse(p)
	if err != nil {
		return err
	}
	// A package that is compiled again for the test of another one has the bodies that it has without it.
	whole := p.Own() && (p.ForTest == "" || p.ForTest == strings.TrimSuffix(p.path(), "_test"))
	config := types.Config{Sizes: sizes, IgnoreFuncBodies: !whole, Importer: imports{checked, p.ImportMap}}
	config.Error = func(err error) {
		if p.Own() {
			p.Errs = append(p.Errs, err)
		}
	}
	if p.Module != nil && p.Module.GoVersion != "" {
		config.GoVersion = "go" + p.Module.GoVersion
	}
	p.Types, _ = config.Check(p.path(), l.positions, files, nil) // config.Error has all errors
	return nil
}

// parse parses the files of a package. Those of dependencies lose the bodies of functions, which would take gigabytes.
func (l *Loader) parse(p *Package) ([]*ast.File, error) {
	var files []*ast.File
	for _, name := range p.GoFiles {
		path := filepath.Join(p.Dir, name)
		if l.parsed[path] == nil {
			file, err := parser.ParseFile(l.positions, path, nil, parser.SkipObjectResolution)
			if err != nil {
				return nil, err
			}
			if !p.Own() {
				dropBodies(file)
			}
			l.parsed[path] = file
		}
		files = append(files, l.parsed[path])
	}
	return files, nil
}

// dropBodies empties the functions of a file.
func dropBodies(file *ast.File) {
	for _, d := range file.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && f.Body != nil {
			f.Body = new(ast.BlockStmt)
		}
	}
}

// imports finds what a package imports.
type imports struct {
	checked map[string]*types.Package
	paths   map[string]string
}

// Import implements types.Importer.
func (i imports) Import(path string) (*types.Package, error) {
	if mapped := i.paths[path]; mapped != "" {
		path = mapped
	}
	if p := i.checked[path]; p != nil {
		return p, nil
	}
	return nil, fmt.Errorf("package %s is not listed", path)
}
