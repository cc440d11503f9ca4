package main

import (
	"errors"
	"fmt"
	"go/token"
	"go/types"
	"runtime"
	"slices"
	"strings"

	"github.com/goart-dev/art/internal/dev/cmd/source"
)

// apiOf returns the sorted lines of the packages of a module, without cgo, so that machines without a C compiler get
// the same lines: backend/device/xla has no names then, and is left out.
func apiOf(module string) ([]string, error) {
	packages, err := source.NewLoader().Load(module, runtime.GOOS, runtime.GOARCH, false)
	if err != nil {
		return nil, err
	}
	var lines []string
	for _, p := range packages {
		if !p.Own() || p.Name == "main" || !isPublic(p.ImportPath) {
			continue
		}
		if len(p.Errs) > 0 {
			return nil, errors.Join(p.Errs...)
		}
		lines = append(lines, packageLines(p.Types)...)
	}
	if len(lines) == 0 {
		return nil, errors.New(module + " has no packages that programs import")
	}
	slices.Sort(lines)
	return slices.Compact(lines), nil
}

// isPublic reports whether docs/versioning.md covers a package. Of the examples it covers the library for agents that
// learn from a description or an MCP server.
func isPublic(path string) bool {
	for _, name := range []string{"examples/agents", "examples/agents/auto", "examples/agents/mcp"} {
		if strings.HasSuffix(path, "/"+name) {
			return true
		}
	}
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
