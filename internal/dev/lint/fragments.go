package lint

import (
	"fmt"
	"go/ast"
	"go/doc/comment"
	"go/format"
	"go/parser"
	"go/token"
	"regexp"
	"slices"
	"strings"
)

// fragments returns the Go blocks of a Markdown text that are no whole programs.
func fragments(markdown string) []string {
	whole := programs(markdown)
	var found []string
	for _, block := range goBlock.FindAllStringSubmatch(markdown, -1) {
		if !slices.Contains(whole, block[1]) {
			found = append(found, block[1])
		}
	}
	return found
}

var (
	// packageName matches the name of a package before one of its names.
	packageName = regexp.MustCompile(`\b([a-z0-9]+)\.[A-Z]`)
	lineComment = regexp.MustCompile(`(?m)(^|\s)//.*$`)
)

// fragmentFile makes a file of package main out of a fragment: the imports that it needs, and a function around it
// unless it declares functions itself. Names that it does not declare are those of other files of the package.
func fragmentFile(fragment string, paths map[string]string) (string, error) {
	var used []string
	body := fragment
	if !strings.HasPrefix(fragment, "func ") {
		var err error
		if used, err = declared(fragment); err != nil {
			return "", err
		}
		body = "func _() {\n" + fragment
		for _, name := range used {
			body += "\n_ = " + name
		}
		body += "\n}\n"
	}
	imported := slices.Clone(used) // a variable hides a package
	text := "package main\n"
	for _, name := range packageName.FindAllStringSubmatch(lineComment.ReplaceAllString(fragment, ""), -1) {
		if path := paths[name[1]]; path != "" && !slices.Contains(imported, name[1]) {
			imported = append(imported, name[1])
			text += fmt.Sprintf("import %s %q\n", name[1], path)
		}
	}
	out, err := format.Source([]byte(text + body))
	return string(out), err
}

// declared returns the variables that the statements of a fragment declare.
func declared(fragment string) ([]string, error) {
	file, err := parser.ParseFile(token.NewFileSet(), "fragment.go", "package p\nfunc _() {\n"+fragment+"\n}", 0)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, s := range file.Decls[0].(*ast.FuncDecl).Body.List {
		assign, ok := s.(*ast.AssignStmt)
		if !ok || assign.Tok != token.DEFINE {
			continue
		}
		for _, left := range assign.Lhs {
			if name, ok := left.(*ast.Ident); ok && name.Name != "_" && !slices.Contains(names, name.Name) {
				names = append(names, name.Name)
			}
		}
	}
	return names, nil
}

// hostedCode matches code that opens a backend of hosted models, or names one of their models.
var hostedCode = regexp.MustCompile(`\b(openai|anthropic|gemini)\.Open\(|NewModel\("(gpt|claude|gemini|o[0-9])-|` +
	`Base: *"(gpt|claude|gemini|o[0-9])-`)

// commentCode returns the code in the doc comments of a file.
func commentCode(file source) ([]string, error) {
	parsed, err := parser.ParseFile(token.NewFileSet(), file.path, file.data, parser.ParseComments)
	if err != nil {
		return nil, err
	}
	var found []string
	for _, group := range parsed.Comments {
		for _, block := range new(comment.Parser).Parse(group.Text()).Content {
			if code, ok := block.(*comment.Code); ok {
				found = append(found, code.Text)
			}
		}
	}
	return found, nil
}

// testBodies returns the bodies of the functions of a test file that go test runs: tests, and examples with an output.
func testBodies(file source) ([]string, error) {
	files := token.NewFileSet()
	parsed, err := parser.ParseFile(files, file.path, file.data, parser.ParseComments)
	if err != nil {
		return nil, err
	}
	var found []string
	for _, decl := range parsed.Decls {
		f, ok := decl.(*ast.FuncDecl)
		if !ok || f.Recv != nil || f.Body == nil {
			continue
		}
		body := string(file.data[files.Position(f.Body.Pos()).Offset:files.Position(f.Body.End()).Offset])
		if strings.HasPrefix(f.Name.Name, "Test") || isExample(f) && strings.Contains(body, "// Output:") {
			found = append(found, body)
		}
	}
	return found, nil
}

// excerpt reports whether lines of code stand in the body of a function as they are, but for their indentation, spaces
// between words, and checks of errors between the lines: check(err).
func excerpt(code, body string) bool {
	return strings.Contains("\n"+plainLines(body)+"\n", "\n"+plainLines(code)+"\n")
}

// plainLines returns the lines of code without checks of errors, empty lines, and what gofmt chooses.
func plainLines(code string) string {
	var lines []string
	for line := range strings.Lines(code) {
		words := strings.Join(strings.Fields(line), " ")
		if words != "" && words != "check(err)" {
			lines = append(lines, words)
		}
	}
	return strings.Join(lines, "\n")
}
