package lint

import (
	"strings"
	"testing"
)

// TestLeaks checks all text files of the repository.
func TestLeaks(t *testing.T) {
	files, err := allFiles(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		for _, problem := range checkLeaks(file) {
			t.Error(problem)
		}
	}
}

// TestCheckLeaks shows the checker what it must find and what it must not. The bars in the bad lines are taken out
// before, so that this file passes.
func TestCheckLeaks(t *testing.T) {
	bad := []string{
		"cd /ho|me/me/art", "see '/ro|ot/x'", "/wo|rk/main/go.mod", "dir=/Us|ers/me",
		"GOPROXY=https://pro|xy.golang.org,direct", "https://su|m.golang.org/lookup", "https://regis|try.npmjs.org/x",
		"https://py|pi.org/simple", "files.python|hosted.org",
	}
	good := []string{
		"https://example.com/home/page", "a folder ./wor" + "k/x", "~/wor" + "k/x", "the root/of the tree", "golang.org/x/text",
		"/tmp/x", "https://pkg.go.dev/net/http", "\x00" + strings.ReplaceAll(bad[0], "|", ""),
	}
	for _, line := range bad {
		line = strings.ReplaceAll(line, "|", "")
		got := checkLeaks(source{"a.md", []byte("first\n" + line)})
		if len(got) != 1 || !strings.HasPrefix(got[0], "a.md:2: ") {
			t.Errorf("%q: got %q", line, got)
		}
	}
	for _, line := range good {
		if got := checkLeaks(source{"a.md", []byte(line)}); len(got) > 0 {
			t.Errorf("%q: got %q", line, got)
		}
	}
}
