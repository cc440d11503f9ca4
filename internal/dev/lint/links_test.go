package lint

import (
	"slices"
	"testing"
)

// TestLinks checks the links of all pages to one another.
func TestLinks(t *testing.T) {
	files, err := allFiles(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, problem := range checkLinks(files) {
		t.Error(problem)
	}
}

// TestCheckLinks shows the checker what it must find and what it must not.
func TestCheckLinks(t *testing.T) {
	const page = "# One: a `page`\n\n[a](../go.mod) [b](b.md#two) [c](https://example.com/x) [d](#one-a-page)\n" +
		"[e](log/) [f](gone.md) [g](b.md#gone) [h](#gone)\n```\n[i](gone)\n# Gone\n```\n"
	files := []source{
		{"docs/README.md", []byte("[a](a.md)\n")},
		{"docs/a.md", []byte(page)},
		{"docs/b.md", []byte("## Two\n")},
		{"docs/log/2026.md", nil},
		{"go.mod", nil},
	}
	want := []string{
		"docs/a.md: the link to gone.md leads nowhere",
		"docs/a.md: the link to b.md#gone leads nowhere",
		"docs/a.md: the link to #gone leads nowhere",
		"docs/b.md is not in docs/README.md",
	}
	if got := checkLinks(files); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
