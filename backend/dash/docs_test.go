package dash

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestDocs: docs/dash.md names every page, every parameter and every key.
func TestDocs(t *testing.T) {
	content, err := os.ReadFile(filepath.Join("..", "..", "docs", "dash.md"))
	require.NoError(t, err)
	doc := string(content)
	files, err := filepath.Glob("*.go")
	require.NoError(t, err)
	param := regexp.MustCompile(`\bp\.(?:Get|number|float|choice)\("(\w+)"|p\.Values\["(\w+)"\]`)
	route := regexp.MustCompile(`"/([a-z]+)": h\.|"GET /([a-z]+)"`)
	found := map[string]bool{}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		source, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, m := range param.FindAllStringSubmatch(string(source), -1) {
			found[m[1]+m[2]] = true
		}
		for _, m := range route.FindAllStringSubmatch(string(source), -1) {
			require.Contains(t, doc, "| `/"+m[1]+m[2]+"` |")
		}
	}
	require.Greater(t, len(found), 20)
	for name := range found {
		require.Regexp(t, "`"+name+"[=`]", doc)
	}
	layout, err := assets.ReadFile("assets/layout.html")
	require.NoError(t, err)
	keys := regexp.MustCompile(`<kbd>(.+?)</kbd>`).FindAllStringSubmatch(string(layout), -1)
	require.Greater(t, len(keys), 10)
	for _, key := range keys {
		require.Contains(t, doc, "`"+key[1]+"`")
	}
}
