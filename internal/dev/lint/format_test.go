package lint

import (
	"bytes"
	"go/format"
	"strings"
	"testing"
)

// TestFormat checks that every Go file, also of the nested modules, is as gofmt writes it.
func TestFormat(t *testing.T) {
	files, err := allFiles(root)
	if err != nil {
		t.Fatal(err)
	}
	checked := 0
	for _, file := range files {
		if !strings.HasSuffix(file.path, ".go") {
			continue
		}
		checked++
		want, err := format.Source(file.data)
		if err != nil {
			t.Errorf("%s: %v", file.path, err)
		} else if !bytes.Equal(file.data, want) {
			t.Errorf("%s is not formatted; run gofmt -w %s", file.path, file.path)
		}
	}
	if checked == 0 {
		t.Error("no Go file was found")
	}
}
