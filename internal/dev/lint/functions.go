package lint

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
)

const (
	maxParameters = 6
	// Lines of a function, from its name to its closing brace.
	maxFunctionLines = 60
)

// fixedByGoMLX are methods whose parameters an interface of GoMLX defines.
var fixedByGoMLX = []string{"Gather", "ScatterSum", "ScatterMax", "ScatterMin", "DotGeneral"}

// checkFunctions returns the functions of a Go file with too many parameters or lines. Generated files and functions
// without a body, which are assembly, pass. Tests have no limit of lines.
func checkFunctions(file source) (problems []string) {
	set := token.NewFileSet()
	parsed, err := parser.ParseFile(set, file.path, file.data, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return []string{err.Error()}
	}
	if ast.IsGenerated(parsed) {
		return nil
	}
	for _, decl := range parsed.Decls {
		f, ok := decl.(*ast.FuncDecl)
		if !ok || f.Body == nil {
			continue
		}
		begin, end := set.Position(f.Pos()).Line, set.Position(f.End()).Line
		report := func(what string, got, limit int) {
			problems = append(problems,
				fmt.Sprintf("%s:%d: %s has %d %s, at most %d", file.path, begin, f.Name.Name, got, what, limit))
		}
		fixed := f.Recv != nil && slices.Contains(fixedByGoMLX, f.Name.Name)
		if n := f.Type.Params.NumFields(); n > maxParameters && !fixed {
			report("parameters", n, maxParameters)
		}
		if lines := end - begin + 1; lines > maxFunctionLines && !file.isTest() {
			report("lines", lines, maxFunctionLines)
		}
	}
	return problems
}
