package lint

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strings"
)

// checkDocs returns the packages and exported names of the files without a doc comment. Tests are left out.
func checkDocs(files []source) []string {
	var problems []string
	packages := map[string]*documented{}
	for _, file := range files {
		if file.isTest() {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file.path, file.data,
			parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			problems = append(problems, err.Error())
			continue
		}
		p := packages[file.pkg()]
		if p == nil {
			p = &documented{path: file.path}
			packages[file.pkg()] = p
		}
		p.add(parsed)
		for _, name := range undocumented(parsed) {
			problems = append(problems, fmt.Sprintf("%s: %s is exported and has no doc comment", file.path, name))
		}
	}
	for dir, p := range packages {
		if !p.ok {
			problems = append(problems,
				fmt.Sprintf("%s: package %q has no doc comment that begins with %q", p.path, dir, p.begin))
		}
	}
	slices.Sort(problems)
	return problems
}

// documented reports whether a package has a doc comment.
type documented struct {
	path  string // of its first file
	begin string // how the comment must begin
	ok    bool
}

// add looks at one file of the package.
func (d *documented) add(file *ast.File) {
	d.begin = "Package " + file.Name.Name
	if file.Name.Name == "main" {
		d.begin = ""
	}
	d.ok = d.ok || file.Doc != nil && strings.HasPrefix(file.Doc.Text(), d.begin)
}

// undocumented returns the exported names of a file that have no doc comment.
func undocumented(file *ast.File) []string {
	var names []string
	for _, decl := range file.Decls {
		switch decl := decl.(type) {
		case *ast.FuncDecl:
			if decl.Name.IsExported() && isPublic(decl.Recv) && decl.Doc == nil {
				names = append(names, decl.Name.Name)
			}
		case *ast.GenDecl:
			names = append(names, undocumentedSpecs(decl)...)
		}
	}
	return names
}

// isPublic reports whether a receiver is of an exported type. No receiver is public.
func isPublic(recv *ast.FieldList) bool {
	if recv == nil {
		return true
	}
	kind := recv.List[0].Type
	for {
		switch t := kind.(type) {
		case *ast.StarExpr:
			kind = t.X
		case *ast.IndexExpr:
			kind = t.X
		case *ast.IndexListExpr:
			kind = t.X
		case *ast.Ident:
			return t.IsExported()
		default:
			return true
		}
	}
}

// undocumentedSpecs returns the exported names of a declaration that have no doc comment. That of a group of constants
// or variables counts for all of them, and so does a comment on their line.
func undocumentedSpecs(decl *ast.GenDecl) []string {
	var names []string
	for _, spec := range decl.Specs {
		switch spec := spec.(type) {
		case *ast.TypeSpec:
			alone := !decl.Lparen.IsValid() && decl.Doc != nil
			if spec.Name.IsExported() && !alone && spec.Doc == nil {
				names = append(names, spec.Name.Name)
			}
		case *ast.ValueSpec:
			if decl.Doc != nil || spec.Doc != nil || spec.Comment != nil {
				continue
			}
			for _, name := range spec.Names {
				if name.IsExported() {
					names = append(names, name.Name)
				}
			}
		}
	}
	return names
}
