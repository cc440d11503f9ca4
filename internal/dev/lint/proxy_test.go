package lint

import (
	"archive/zip"
	"os"
	"path/filepath"
	"testing"
)

// version is that of the module in the proxy of a test.
const version = "v0.0.0-test"

// writeProxy makes a module proxy of local files in dir that serves this module, with more files, and nothing else.
func writeProxy(t *testing.T, dir string, files []source) {
	t.Helper()
	dir = filepath.Join(dir, filepath.FromSlash(module), "@v")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	mod, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string]string{
		"list":            version + "\n",
		version + ".info": `{"Version": "` + version + `", "Time": "2026-01-01T00:00:00Z"}`,
		version + ".mod":  string(mod),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	writeModuleZip(t, filepath.Join(dir, version+".zip"), append(files, source{"go.mod", mod}))
}

// writeModuleZip packs files as the go command expects a module: with its path and version before each name.
func writeModuleZip(t *testing.T, name string, files []source) {
	t.Helper()
	out, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	archive := zip.NewWriter(out)
	for _, file := range files {
		w, err := archive.Create(module + "@" + version + "/" + file.path)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(file.data); err != nil {
			t.Fatal(err)
		}
	}
	if err := archive.Close(); err != nil {
		t.Fatal(err)
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
}
