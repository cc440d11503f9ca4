package lint

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strings"
)

// checkExamples returns the public packages, among those of the files, that have no Example.
func checkExamples(files []source) []string {
	public, shown := map[string]bool{}, map[string]bool{}
	for _, file := range files {
		if isInternal(file.pkg()) {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file.path, file.data, parser.SkipObjectResolution)
		switch {
		case err != nil:
			return []string{err.Error()}
		case !file.isTest():
			public[file.pkg()] = parsed.Name.Name != "main"
		case slices.ContainsFunc(parsed.Decls, isExample):
			shown[file.pkg()] = true
		}
	}
	var problems []string
	for pkg, ok := range public {
		if ok && !shown[pkg] {
			problems = append(problems, fmt.Sprintf("package %q has no Example; show in example_test.go, in 10 to 30 lines, "+
				"what a newcomer does first", pkg))
		}
	}
	slices.Sort(problems)
	return problems
}

// isInternal reports whether a package is not for users of the module.
func isInternal(pkg string) bool {
	first, _, _ := strings.Cut(pkg, "/")
	return slices.Contains(strings.Split(pkg, "/"), "internal") || first == "cmd" || first == "examples"
}

// isExample reports whether a declaration of a test file is an Example.
func isExample(decl ast.Decl) bool {
	f, ok := decl.(*ast.FuncDecl)
	return ok && f.Recv == nil && strings.HasPrefix(f.Name.Name, "Example")
}
