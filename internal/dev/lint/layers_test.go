package lint

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// root is the root of the repository.
var root = filepath.Join("..", "..", "..")

// mustGoFiles reads the Go files of the module.
func mustGoFiles(t *testing.T) []source {
	t.Helper()
	files, err := goFiles(root)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(files, func(f source) bool { return f.path == "message.go" }) {
		t.Fatalf("the root of the module is not at %s", root)
	}
	return files
}

// TestLayers checks the imports of every file against the table.
func TestLayers(t *testing.T) {
	for _, file := range mustGoFiles(t) {
		for _, problem := range checkImports(file) {
			t.Error(problem)
		}
	}
}

// TestLayers_Table checks the table itself: its entries name each other, and what is light rests on what is light.
func TestLayers_Table(t *testing.T) {
	for key, rule := range layers {
		for _, own := range rule.own {
			below, ok := findLayer(strings.TrimSuffix(own, "/..."))
			if !ok {
				t.Errorf("%q may import %q, which has no entry of its own", key, own)
			}
			if rule.light && !below.light {
				t.Errorf("%q is light and may import %q, which is not", key, own)
			}
		}
		if rule.light && slices.ContainsFunc(rule.mods, func(m string) bool { return slices.Contains(gomlx, m) }) {
			t.Errorf("%q is light and may import GoMLX", key)
		}
	}
	for _, pkg := range testOnly {
		if !layers[pkg].light {
			t.Errorf("%q is imported by the tests of light packages and is not light", pkg)
		}
	}
}

// TestLayers_Folders: the table has only packages that exist, and CONTRIBUTING.md only folders.
func TestLayers_Folders(t *testing.T) {
	for key := range layers {
		dir, family := strings.CutSuffix(key, "/...")
		files, err := filepath.Glob(filepath.Join(root, dir, "*.go"))
		if err != nil || len(files) == 0 && !family {
			t.Errorf("the table of internal/dev/lint/layers.go has %q, which is no package", key)
		}
	}
	guide, err := os.ReadFile(filepath.Join(root, "CONTRIBUTING.md"))
	if err != nil {
		t.Fatal(err)
	}
	rows := regexp.MustCompile("(?m)^\\| (`.*?) \\|").FindAllStringSubmatch(string(guide), -1)
	if len(rows) == 0 {
		t.Error("CONTRIBUTING.md has no table of packages")
	}
	for _, row := range rows {
		for _, name := range regexp.MustCompile("`(.*?)`").FindAllStringSubmatch(row[1], -1) {
			dir := strings.TrimSuffix(name[1], "/...")
			if dir == "art" {
				dir = "." // the root
			}
			if info, err := os.Stat(filepath.Join(root, dir)); err != nil || !info.IsDir() {
				t.Errorf("CONTRIBUTING.md has %q, which is no folder", name[1])
			}
		}
	}
}

// TestCheckImports shows violations and what is no violation to the checker. want is a part of the message; "" is none.
func TestCheckImports(t *testing.T) {
	const art, ml = module, "github.com/gomlx/gomlx/core/graph"
	cases := []struct{ path, imported, want string }{
		{"chat.go", "net/http", ""},
		{"chat.go", ml, `package "" may not import ` + ml},
		{"chat.go", art + "/grpo", "may not import"},
		{"chat_test.go", art, ""},
		{"chat_test.go", art + "/internal/dev/arttest", ""},
		{"chat_test.go", art + "/backend/local", "may not import"},
		{"chat_test.go", "github.com/stretchr/testify/require", "may not import"},
		{"backend/backendtest/train.go", art, ""},
		{"backend/backendtest/train.go", art + "/tokenizer", "may not import"},
		{"backend/backendtest/train.go", art + "/internal/dev/arttest", "may not import"},
		{"tokenizer/bpe.go", "github.com/rivo/uniseg", ""},
		{"tokenizer/bpe.go", ml, "may not import"},
		{"tokenizer/bpe_test.go", ml, "may not import"},
		{"grpo/loss.go", ml, ""},
		{"grpo/loss.go", "github.com/gomlx/gomlxplus/core", "may not import"},
		{"grpo/loss.go", art, "may not import"},
		{"grpo/loss.go", art + "/lora", "may not import"},
		{"grpo/loss_test.go", "github.com/stretchr/testify/require", ""},
		{"grpo/loss.go", "github.com/stretchr/testify/require", "may not import"},
		{"model/forward.go", art + "/lora", "may not import"},
		{"model/tiny/tiny.go", art + "/model", ""},
		{"model/tiny/tiny.go", art + "/internal/graphx", "may not import"},
		{"model/tiny/tiny.go", ml, "may not import"},
		{"backend/doc.go", art, "may not import"},
		{"backend/local/train.go", art + "/grpo", ""},
		{"backend/local/progress.go", "golang.org/x/term", ""},
		{"backend/server/server.go", art + "/backend/local", "may not import"},
		{"backend/device/cpu/internal/cpuid/cpuid.go", "golang.org/x/sys/cpu", ""},
		{"backend/device/cpu/device.go", art + "/backend/device/cpu/internal/exec", ""},
		{"backend/device/cpu/internal/exec/exec.go", art + "/backend/device/cpu/internal/ir", ""},
		{"backend/device/cpu/internal/exec/exec.go", art + "/backend/device/cpu/internal/compile", "may not import"},
		{"backend/device/cpu/internal/compile/fold.go", art + "/backend/device/cpu/internal/exec", "may not import"},
		{"backend/device/cpu/internal/gemm/gemm.go", art + "/backend/device/cpu/internal/ir", "may not import"},
		{"backend/device/cpu/device.go", ml, "may not import"},
		{"backend/device/xla/xla.go", "github.com/gomlx/go-xla/pkg", ""},
		{"backend/device/xla/interpose.go", "C", ""},
		{"backend/device/cpu/device.go", "C", "may not import C"},
		{"internal/wire/models.go", art, ""},
		{"internal/wire/models_test.go", ml, "may not import"},
		{"internal/trainer/step.go", art + "/grpo", ""},
		{"internal/trainer/step.go", art, "may not import"},
		{"internal/trainer/step.go", "golang.org/x/term", "may not import"},
		{"internal/dev/cmd/tinymodel/main.go", art + "/internal/trainer", ""},
		{"examples/tictactoe/main.go", art + "/backend/local", ""},
		{"internal/utils/all.go", "fmt", `package "internal/utils" is not in the table`},
		{"internal/dev/lint/sub/x.go", "fmt", "is not in the table"},
	}
	for _, c := range cases {
		file := source{path: c.path, data: []byte("package p\n\nimport _ \"" + c.imported + "\"\n")}
		got := strings.Join(checkImports(file), "\n")
		if (c.want == "") != (got == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s imports %s: got %q, want %q", c.path, c.imported, got, c.want)
		}
	}
}
