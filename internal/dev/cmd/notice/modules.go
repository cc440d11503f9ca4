package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// systems are those that art is built for. On Linux also with cgo, for XLA.
var systems = [][]string{
	{"GOOS=linux", "CGO_ENABLED=1"}, {"GOOS=linux", "CGO_ENABLED=0"}, {"GOOS=darwin", "CGO_ENABLED=0"},
	{"GOOS=windows", "CGO_ENABLED=0"},
}

// module is a module of which packages are compiled.
type module struct {
	path, version, dir string
	folders            map[string]bool // of the packages, absolute
	texts              []text
	licences           []string // SPDX, sorted
}

// text is a licence or a notice.
type text struct{ path, content string }

// listed is what go list prints of a package.
type listed struct {
	Dir      string
	Standard bool
	Module   *struct {
		Path, Version, Dir string
		Main               bool
	}
}

// compiledModules returns the modules in the command art, the standard library first, and reads their licences.
func compiledModules() ([]*module, error) {
	found := map[string]*module{}
	for _, env := range systems {
		cmd := exec.Command("go", "list", "-deps", "-json=Dir,Standard,Module", "./cmd/art")
		cmd.Env = append(append(os.Environ(), "GOARCH=amd64"), env...)
		cmd.Stderr = os.Stderr
		out, err := cmd.Output()
		if err != nil {
			return nil, fmt.Errorf("go list: %w", err)
		}
		if err := addPackages(found, out); err != nil {
			return nil, err
		}
	}
	goroot, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return nil, fmt.Errorf("go env: %w", err)
	}
	library := &module{path: "Go standard library", dir: strings.TrimSpace(string(goroot))}
	list := append([]*module{library}, slices.SortedFunc(maps.Values(found), func(a, b *module) int {
		return cmp.Compare(a.path, b.path)
	})...)
	var problems []error
	for _, m := range list {
		problems = append(problems, m.read())
	}
	return list, errors.Join(problems...)
}

// addPackages adds the modules of packages as go list prints them.
func addPackages(found map[string]*module, list []byte) error {
	for d := json.NewDecoder(bytes.NewReader(list)); ; {
		var p listed
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		if p.Standard || p.Module == nil || p.Module.Main {
			continue
		}
		m := found[p.Module.Path]
		if m == nil {
			m = &module{path: p.Module.Path, version: p.Module.Version, dir: p.Module.Dir, folders: map[string]bool{}}
			found[m.path] = m
		}
		m.folders[p.Dir] = true
	}
}

// read reads the licences of a module: those in its root, and in the folders of its packages and above them.
func (m *module) read() error {
	if file, ok := chosen[m.path]; ok {
		return m.add(filepath.Join(m.dir, file))
	}
	dirs := map[string]bool{m.dir: true}
	for dir := range m.folders {
		for ; dir != m.dir && len(dir) > len(m.dir); dir = filepath.Dir(dir) {
			dirs[dir] = true
		}
	}
	for _, dir := range slices.Sorted(maps.Keys(dirs)) {
		entries, err := os.ReadDir(dir)
		if err != nil {
			return err
		}
		for _, e := range entries {
			if e.Type().IsRegular() && isLegal(e.Name()) {
				if err := m.add(filepath.Join(dir, e.Name())); err != nil {
					return err
				}
			}
		}
	}
	if len(m.licences) == 0 {
		return fmt.Errorf("%s %s has no licence that is known: read its files, and add it to licence.go beside this one",
			m.path, m.version)
	}
	slices.Sort(m.licences)
	m.licences = slices.Compact(m.licences)
	return nil
}

// add reads one file.
func (m *module) add(path string) error {
	content, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	name, err := filepath.Rel(m.dir, path)
	if err != nil {
		return err
	}
	ids, refused := licencesIn(string(content))
	if len(refused) > 0 {
		return fmt.Errorf("%s %s: %s has the words %q: read it, and replace the module if its licence does not permit that "+
			"art is distributed under its own", m.path, m.version, name, refused)
	}
	m.texts = append(m.texts, text{filepath.ToSlash(name), string(content)})
	m.licences = append(m.licences, ids...)
	return nil
}

// isLegal reports whether a file is a licence or a notice, by its name.
func isLegal(name string) bool {
	name = strings.ToUpper(name)
	if strings.HasSuffix(name, ".GO") {
		return false
	}
	for _, prefix := range []string{"LICENSE", "LICENCE", "COPYING", "NOTICE", "UNLICENSE", "PATENTS"} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}
