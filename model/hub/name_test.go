package hub

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestParseName(t *testing.T) {
	for text, want := range map[string]Name{
		"Qwen/Qwen3-0.6B":                   {"Qwen/Qwen3-0.6B", "main"},
		"a/b@v1.0":                          {"a/b", "v1.0"},
		"a/b@refs/pr/1":                     {"a/b", "refs/pr/1"},
		"a_b/c@" + strings.Repeat("0f", 20): {"a_b/c", strings.Repeat("0f", 20)},
	} {
		n, err := ParseName(text)
		require.NoError(t, err)
		require.Equal(t, want, n)
	}
	for _, text := range []string{
		"", "a", "/", "a/", "/a", "a/b/c", "./a", "../a", "a/..", "a/.", "~/a", "a/b@", "a/b@..", "a/b@../x", "a/b@x/../y",
		"a/b@/x", "a/b@x/",
		"a/b@x//y", `a\b/c`, "a/b c", "a--b/c", "a/b..c", "a/b@x\x00", "a/-b", "a/b.", "/abs/path", "a/b@c@d", "a/b@.lock",
		"a/" + strings.Repeat("x", 100),
	} {
		_, err := ParseName(text)
		require.Error(t, err, text)
	}
}

// FuzzParseName: whatever is accepted stays inside the cache.
func FuzzParseName(f *testing.F) {
	for _, text := range []string{"a/b", "a/b@main", "a/b@refs/pr/1", "../..", "a/b@../../x", "a--b/c"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		n, err := ParseName(text)
		if err != nil {
			return
		}
		c := cache{repo: repoFolder(n)}
		if !filepath.IsLocal(c.repo) || strings.Contains(c.repo, "/") || strings.Count(c.repo, "--") != 2 {
			t.Errorf("%q: folder %q", text, c.repo)
		}
		if ref := c.refPath(n.Revision); !strings.HasPrefix(ref, c.repo+"/refs/") || !filepath.IsLocal(ref) {
			t.Errorf("%q: ref %q", text, ref)
		}
	})
}
