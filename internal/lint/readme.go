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
