package lint

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"strings"
	"unicode/utf8"
)

// maxColumns is the maximum length of a line of Go, in characters. A tab counts as one.
const maxColumns = 120

// checkColumns returns the lines of a Go file that are too long. Generated files pass, and so do three kinds of lines
// of tests, which are data: those that begin with an element of a composite literal, such as a row of a table of cases,
// those that begin with or within a string, and the expected output of examples.
func checkColumns(file source) []string {
	var long []int
	for i, line := range strings.Split(string(file.data), "\n") {
		if utf8.RuneCountInString(line) > maxColumns {
			long = append(long, i+1)
		}
	}
	if len(long) == 0 {
		return nil
	}
	set := token.NewFileSet()
	parsed, err := parser.ParseFile(set, file.path, file.data, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return []string{err.Error()}
	}
	if ast.IsGenerated(parsed) {
		return nil
	}
	data := map[int]bool{}
	if file.isTest() {
		data = dataLines(set, parsed)
	}
	var problems []string
	for _, line := range long {
		if !data[line] {
			problems = append(problems, fmt.Sprintf("%s:%d: longer than %d characters", file.path, line, maxColumns))
		}
	}
	return problems
}

// dataLines returns the lines of a test that are data.
func dataLines(set *token.FileSet, file *ast.File) map[int]bool {
	lines := map[int]bool{}
	line := func(pos token.Pos) int { return set.Position(pos).Line }
	first := firstNodes(set, file)
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CompositeLit:
			for _, element := range n.Elts {
				lines[line(element.Pos())] = lines[line(element.Pos())] || first[line(element.Pos())] == element.Pos()
			}
		case *ast.BasicLit:
			if n.Kind == token.STRING && first[line(n.Pos())] == n.Pos() {
				lines[line(n.Pos())] = true
			}
			addLines(lines, line(n.Pos())+1, line(n.End()))
		}
		return true
	})
	for _, group := range file.Comments {
		if isOutput(group) {
			addLines(lines, line(group.Pos()), line(group.End()))
		}
	}
	return lines
}

// firstNodes returns where the first node of each line begins.
func firstNodes(set *token.FileSet, file *ast.File) map[int]token.Pos {
	first := map[int]token.Pos{}
	ast.Inspect(file, func(n ast.Node) bool {
		if n == nil {
			return true
		}
		line := set.Position(n.Pos()).Line
		if pos, ok := first[line]; !ok || n.Pos() < pos {
			first[line] = n.Pos()
		}
		return true
	})
	return first
}

// addLines adds the lines from one to another.
func addLines(lines map[int]bool, from, to int) {
	for i := from; i <= to; i++ {
		lines[i] = true
	}
}

// isOutput reports whether a comment is the expected output of an example.
func isOutput(group *ast.CommentGroup) bool {
	text := group.Text()
	return strings.HasPrefix(text, "Output:") || strings.HasPrefix(text, "Unordered output:")
}
