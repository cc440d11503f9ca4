package lint

import (
	"fmt"
	"go/ast"
	"go/doc"
	"go/doc/comment"
	"go/parser"
	"go/token"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
)

// checkRendering returns what go doc and pkg.go.dev would show otherwise than it was meant, in the doc comments of
// packages and exported names: links that lead nowhere and stay in brackets, links within blocks of code, and items of
// lists that are not indented and become running text.
func checkRendering(files []source) []string {
	packages := map[string][]*ast.File{}
	fset := token.NewFileSet()
	for _, file := range files {
		if file.isTest() || strings.HasPrefix(file.pkg(), "examples") {
			continue
		}
		parsed, err := parser.ParseFile(fset, file.path, file.data, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return []string{err.Error()}
		}
		packages[file.pkg()] = append(packages[file.pkg()], parsed)
	}
	r := &rendering{names: map[string]map[string]bool{}}
	for pkg, list := range packages {
		r.names[path.Join(module, pkg)] = exportedNames(list) // before go/doc removes what is not exported
	}
	for _, pkg := range slices.Sorted(maps.Keys(packages)) {
		p, err := doc.NewFromFiles(fset, packages[pkg], path.Join(module, pkg))
		if err != nil {
			return []string{err.Error()}
		}
		r.pkg, r.parser = pkg, p.Parser()
		r.check("the package", p.Doc)
		r.declarations(p.Consts, p.Vars, p.Funcs)
		for _, t := range p.Types {
			r.check(t.Name, t.Doc)
			r.declarations(t.Consts, t.Vars, slices.Concat(t.Funcs, t.Methods))
		}
	}
	return r.problems
}

// rendering checks the comments of a package.
type rendering struct {
	names    map[string]map[string]bool // exported ones, by the path of their package
	pkg      string
	parser   *comment.Parser
	problems []string
}

func (r *rendering) declarations(consts, vars []*doc.Value, funcs []*doc.Func) {
	for _, v := range slices.Concat(consts, vars) {
		r.check(v.Names[0], v.Doc)
	}
	for _, f := range funcs {
		r.check(f.Name, f.Doc)
	}
}

// link matches what is written as a link, and not a shape such as [N] or the argument of a type; item matches the
// beginning of an item of a list.
var (
	link = regexp.MustCompile(`(?m)(?:^|[^\w\]])(\[\*?(?:\w+\.){0,2}[A-Z]\w+\])`)
	item = regexp.MustCompile(`(?m)^((?:[-*+•]|\d+[.)]) .*)`)
)

// check parses the comment of a name.
func (r *rendering) check(name, text string) {
	blocks := r.parser.Parse(text).Content
	for i := 0; i < len(blocks); i++ {
		switch b := blocks[i].(type) {
		case *comment.Paragraph:
			r.texts(name, b.Text)
		case *comment.Heading:
			r.texts(name, b.Text)
		case *comment.List:
			for _, item := range b.Items {
				blocks = append(blocks, item.Content...)
			}
		case *comment.Code:
			r.report(name, "is in a block of code", link, b.Text)
		}
	}
}

// texts checks running text.
func (r *rendering) texts(name string, list []comment.Text) {
	for _, text := range list {
		switch t := text.(type) {
		case comment.Plain:
			r.report(name, "does not resolve; import the package or write its path", link, string(t))
			r.report(name, "is an item of a list that is not indented", item, string(t))
		case *comment.DocLink:
			target := strings.TrimPrefix(strings.Join([]string{t.Recv, t.Name}, "."), ".")
			if names, ours := r.names[t.ImportPath]; ours && t.Name != "" && !names[target] {
				r.add(name, target, "does not exist in "+t.ImportPath)
			}
		}
	}
}

// report adds a problem for each match in a text.
func (r *rendering) report(name, problem string, expr *regexp.Regexp, text string) {
	for _, match := range expr.FindAllStringSubmatch(text, -1) {
		r.add(name, match[1], problem)
	}
}

func (r *rendering) add(name, text, problem string) {
	r.problems = append(r.problems, fmt.Sprintf("package %q, %s: %q %s", r.pkg, name, text, problem))
}

// exportedNames returns the names that a package exports; those of methods and fields as TYPE.NAME.
func exportedNames(files []*ast.File) map[string]bool {
	names := map[string]bool{}
	for _, file := range files {
		for _, decl := range file.Decls {
			switch d := decl.(type) {
			case *ast.FuncDecl:
				names[strings.TrimPrefix(receiver(d)+"."+d.Name.Name, ".")] = true
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					addNames(names, spec)
				}
			}
		}
	}
	return names
}

// receiver returns the name of the type of a method, "" for a function.
func receiver(f *ast.FuncDecl) string {
	if f.Recv == nil {
		return ""
	}
	name := ""
	ast.Inspect(f.Recv.List[0].Type, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok && name == "" {
			name = id.Name
		}
		return name == ""
	})
	return name
}

// addNames adds the names of a declaration.
func addNames(names map[string]bool, spec ast.Spec) {
	switch s := spec.(type) {
	case *ast.ValueSpec:
		for _, id := range s.Names {
			names[id.Name] = true
		}
	case *ast.TypeSpec:
		names[s.Name.Name] = true
		var fields *ast.FieldList
		switch t := s.Type.(type) {
		case *ast.StructType:
			fields = t.Fields
		case *ast.InterfaceType:
			fields = t.Methods
		default:
			return
		}
		for _, field := range fields.List {
			for _, id := range field.Names {
				names[s.Name.Name+"."+id.Name] = true
			}
		}
	}
}
