package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestCheck_Platforms: what only one system compiles is checked, in tests too, and what is right is not complained of.
func TestCheck_Platforms(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":    "module example.com/p\n\ngo 1.26\n",
		"p.go":      "package p\n\nimport \"os\"\n\nfunc Open() (*os.File, error) { return os.Open(\"p\") }\n",
		"p_unix.go": "//go:build unix\n\npackage p\n\nimport \"syscall\"\n\nfunc end(n int) error { return syscall.Kill(n, 9) }\n",
		"p_windows.go": "package p\n\nimport \"fmt\"\n\nfunc end(n int) error { unused := n; return syscall.Kill(n, 9) }\n" +
			"func size() int { return \"four\" }\n",
		"p_test.go":         "package p\n\nvar _ = end(\"text\")\n",
		"p_outside_test.go": "package p_test\n\nimport \"example.com/p\"\n\nvar _, _, _ = p.Open()\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	err := check(dir, []string{"linux/arm64", "windows/amd64"})
	if err == nil {
		t.Fatal("no error")
	}
	want := map[string][]string{
		"linux/arm64":   {"p_test.go:3", "p_outside_test.go:5"},
		"windows/amd64": {"p_windows.go:3", "p_windows.go:5", "p_windows.go:6", "p_test.go:3", "p_outside_test.go:5"},
	}
	for platform, places := range want {
		for _, place := range places {
			if !strings.Contains(err.Error(), platform+": "+filepath.Join(dir, place)) {
				t.Errorf("nothing about %s for %s", place, platform)
			}
		}
	}
	if strings.Contains(err.Error(), "p.go:") || strings.Contains(err.Error(), "p_unix.go:") {
		t.Error("complains of what is right")
	}
	if t.Failed() {
		t.Log(err)
	}
}
