package lint

import (
	"strings"
	"testing"
)

// TestWords checks the words of all source files, those of this check aside.
func TestWords(t *testing.T) {
	files, err := allFiles(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if strings.HasPrefix(file.path, "internal/dev/lint/words") {
			continue
		}
		for _, problem := range checkWords(file) {
			t.Error(problem)
		}
	}
}

// TestCheckWords shows the checker what it must find and what it must not.
func TestCheckWords(t *testing.T) {
	for _, c := range []struct {
		path, line string
		want       bool
	}{
		{"a.go", "// x is Turned.", true},
		{"a.go", "// It mends them.", true},
		{"a.py", "# rows are fetched ahead", true},
		{".ci/run", "# large pages", true},
		{"a.go", "type inflow struct", true},
		{"a.go", "const linger = 5", true},
		{"a.go", "// a spoilt sequence", true},
		{"a.go", "// An amendment returned.", false},
		{"a.go", "// One turn of a conversation turns.", false},
		{"a.md", "turned", false},
		{"testdata/a.json", "turned", false},
	} {
		if got := checkWords(source{c.path, []byte("\n" + c.line)}); len(got) > 0 != c.want {
			t.Errorf("%s: %q: got %q", c.path, c.line, got)
		}
	}
}
