package lint

import (
	"bytes"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
)

// privateWords are terms that only this project used. Each has a standard one.
var privateWords = []struct {
	pattern *regexp.Regexp
	use     string
}{
	{regexp.MustCompile(`(?i)\bturned\b`), "rotated, transposed, swapped operands, range-reduced, or what is meant"},
	{regexp.MustCompile(`(?i)\bmend(s|ed|ing)?\b`), "fix"},
	{regexp.MustCompile(`(?i)\bfetch(es|ed|ing)? ahead\b`), "prefetch"},
	{regexp.MustCompile(`(?i)\blarge pages?\b`), "huge page"},
	{regexp.MustCompile(`(?i)\b(first|second|third) cache\b`), "L1, L2, L3"},
	{regexp.MustCompile(`(?i)\bspeed of reading\b`), "memory bandwidth"},
	{regexp.MustCompile(`(?i)\bright, and slow\b`), "exact but slow"},
	{regexp.MustCompile(`(?i)\binflows?\b`), "source, or producer"},
	{regexp.MustCompile(`(?i)\blinger(s|ed|ing)?\b`), "spin, delay, or what is meant"},
	{regexp.MustCompile(`(?i)\bspoil(s|t|ed|ing)?\b`), "make invalid, damage, or what is meant"},
	{regexp.MustCompile(`KeepBatchScale`), "NormalizeAdvantages"},
}

// checkWords returns the lines of a source file that have a private word.
func checkWords(file source) []string {
	if !slices.Contains([]string{".go", ".s", ".py", ".sh"}, path.Ext(file.path)) &&
		!strings.HasPrefix(file.path, ".ci/") {
		return nil
	}
	var problems []string
	for i, line := range bytes.Split(file.data, []byte("\n")) {
		for _, word := range privateWords {
			if found := word.pattern.Find(line); found != nil {
				problems = append(problems, fmt.Sprintf("%s:%d: write %s instead of %q", file.path, i+1, word.use, found))
			}
		}
	}
	return problems
}
