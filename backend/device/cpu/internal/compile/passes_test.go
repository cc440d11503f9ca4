package compile

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// TestPasses_Document: docs/design.md lists the passes in their order.
func TestPasses_Document(t *testing.T) {
	data, err := os.ReadFile("../../../../../docs/design.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, ok := strings.Cut(string(data), "| pass | what it does |\n|---|---|\n")
	if !ok {
		t.Fatal("docs/design.md has no table of passes")
	}
	var documented, names []string
	for line := range strings.Lines(table) {
		if !strings.HasPrefix(line, "|") {
			break
		}
		documented = append(documented, strings.TrimSpace(strings.Split(line, "|")[1]))
	}
	for _, p := range passes() {
		names = append(names, p.name)
	}
	if !slices.Equal(documented, names) {
		t.Errorf("docs/design.md lists %v, the passes are %v", documented, names)
	}
}
