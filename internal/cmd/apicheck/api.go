package main

import (
	"bytes"
	"errors"
	"fmt"
	"go/importer"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
)

// apiOf returns the sorted lines of the packages of a module, from what the compiler exports.
func apiOf(module string) ([]string, error) {
	exports, err := exportsOf(module)
	if err != nil {
		return nil, err
	}
	open := func(path string) (io.ReadCloser, error) {
		file, ok := exports.files[path]
		if !ok {
			return nil, fmt.Errorf("go list does not know package %s", path)
		}
		return os.Open(file)
	}
	from := importer.ForCompiler(token.NewFileSet(), "gc", open)
	var lines []string
	for _, path := range exports.public {
		p, err := from.Import(path)
		if err != nil {
			return nil, err
		}
		lines = append(lines, packageLines(p)...)
	}
	slices.Sort(lines)
	return slices.Compact(lines), nil
}

// exports are the files with the export data of packages.
type exports struct {
	files  map[string]string // by path of the package
	public []string          // packages that programs import
}

// exportsOf compiles the packages of a module, without cgo, so that machines without a C compiler get the same lines:
// backend/device/xla has no names then, and is left out.
func exportsOf(module string) (*exports, error) {
	cmd := exec.Command("go", "list", "-export", "-deps", "-f",
		"{{.ImportPath}}\t{{.Export}}\t{{.Name}}\t{{with .Module}}{{.Main}}{{end}}", "./...")
	cmd.Dir, cmd.Env = module, append(os.Environ(), "CGO_ENABLED=0")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w\n%s", err, stderr.String())
	}
	e := &exports{files: map[string]string{}}
	for line := range strings.Lines(string(out)) {
		fields := strings.Split(strings.TrimSpace(line), "\t")
		if len(fields) < 3 {
			return nil, fmt.Errorf("go list printed %q", line)
		}
		path := fields[0]
		e.files[path] = fields[1]
		if len(fields) == 4 && fields[3] == "true" && fields[2] != "main" && isPublic(path) {
			e.public = append(e.public, path)
		}
	}
	if len(e.public) == 0 {
		return nil, errors.New(module + " has no packages that programs import")
	}
	return e, nil
}

// isPublic reports whether docs/versioning.md covers a package.
func isPublic(path string) bool {
	for _, part := range strings.Split(path, "/") {
		if part == "internal" || part == "cmd" || part == "examples" {
			return false
		}
	}
	return true
}

// packageLines describes the exported names of a package.
func packageLines(p *types.Package) []string {
	var lines []string
	prefix := "pkg " + p.Path() + ", "
	for _, name := range p.Scope().Names() {
		object := p.Scope().Lookup(name)
		if !object.Exported() {
			continue
		}
		for _, line := range objectLines(p, object) {
			lines = append(lines, prefix+line)
		}
	}
	return lines
}

// objectLines describes an exported name.
func objectLines(p *types.Package, object types.Object) []string {
	qualify := types.RelativeTo(p)
	switch o := object.(type) {
	case *types.Const:
		return []string{fmt.Sprintf("const %s %s = %s", o.Name(), types.TypeString(o.Type(), qualify), o.Val().ExactString())}
	case *types.Var:
		return []string{fmt.Sprintf("var %s %s", o.Name(), types.TypeString(o.Type(), qualify))}
	case *types.Func:
		return []string{"func " + o.Name() + signature(o.Signature(), qualify)}
	case *types.TypeName:
		return typeLines(o, qualify)
	}
	return nil
}

// signature writes types only: names of parameters may change.
func signature(s *types.Signature, qualify types.Qualifier) string {
	unnamed := func(t *types.Tuple) *types.Tuple {
		var vars []*types.Var
		for v := range t.Variables() {
			vars = append(vars, types.NewParam(token.NoPos, v.Pkg(), "", v.Type()))
		}
		return types.NewTuple(vars...)
	}
	bare := types.NewSignatureType(nil, nil, nil, unnamed(s.Params()), unnamed(s.Results()), s.Variadic())
	return typeParams(s.TypeParams(), qualify) + strings.TrimPrefix(types.TypeString(bare, qualify), "func")
}

// typeParams writes constraints: [T any].
func typeParams(list *types.TypeParamList, qualify types.Qualifier) string {
	var params []string
	for p := range list.TypeParams() {
		params = append(params, p.Obj().Name()+" "+types.TypeString(p.Constraint(), qualify))
	}
	if len(params) == 0 {
		return ""
	}
	return "[" + strings.Join(params, ", ") + "]"
}
