package lint

import (
	"regexp"
	"strings"
)

// goBlock matches a fenced block of Go in Markdown.
var goBlock = regexp.MustCompile("(?ms)^```go\r?\n(.*?)^```")

// programs returns the whole programs among the Go blocks of a Markdown text: those of package main.
func programs(markdown string) []string {
	var found []string
	for _, block := range goBlock.FindAllStringSubmatch(markdown, -1) {
		if strings.HasPrefix(block[1], "package main\n") || strings.Contains(block[1], "\npackage main\n") {
			found = append(found, block[1])
		}
	}
	return found
}

// output returns what a program says that it prints: the comment "// Output:" at the end of its main function, as in an
// Example.
func output(program string) (want string, ok bool) {
	_, comment, ok := strings.Cut(program, "// Output:\n")
	comment, _, _ = strings.Cut(comment, "\n}")
	var lines []string
	for line := range strings.Lines(comment) {
		line = strings.TrimPrefix(strings.TrimLeft(line, "\t "), "//")
		lines = append(lines, strings.TrimPrefix(line, " "))
	}
	return trimLines(strings.Join(lines, "")), ok
}

// trimLines removes spaces at the ends of lines and around all of them.
func trimLines(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " \r\t")
	}
	return strings.Join(lines, "\n")
}
