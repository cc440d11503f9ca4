package lint

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
)

// leaks are what a file of the repository must not tell of the machine that it was written on. The names of hosts are
// put together here, so that this file passes its own check.
var leaks = []struct {
	what    string
	pattern *regexp.Regexp
}{
	{"a path of a machine", regexp.MustCompile(`(^|[^\w./~-])/(work|root|home|Users)/\w`)},
	{"the host of a package registry", regexp.MustCompile(strings.Join([]string{
		`\b(proxy|sum)\.` + `golang\.org\b`,
		`\bregistry\.` + `(npmjs|yarnpkg)\.`,
		`\b(pypi|test\.pypi)\.` + `org\b`,
		`\bfiles\.` + `pythonhosted\.`,
	}, "|"))},
}

// checkLeaks returns the lines of a text file that reveal something about a machine. Binary files pass.
func checkLeaks(file source) []string {
	if bytes.IndexByte(file.data, 0) >= 0 {
		return nil
	}
	var problems []string
	for i, line := range bytes.Split(file.data, []byte("\n")) {
		for _, leak := range leaks {
			if found := leak.pattern.Find(line); found != nil {
				problems = append(problems, fmt.Sprintf("%s:%d: holds %s, %q; take it out", file.path, i+1, leak.what, found))
			}
		}
	}
	return problems
}
