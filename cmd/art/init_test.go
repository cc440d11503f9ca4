package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A project compiles, its test trains an agent that gets better, and the program resumes.
func TestInit(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles and trains")
	}
	checkout, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	var stdout, stderr bytes.Buffer
	var printed []string
	if code := runCommand([]string{"init", "--replace", checkout, "my-agent"}, &stdout, &stderr); code != 0 {
		t.Fatalf("status %d: %s", code, stderr.String())
	}
	for _, args := range [][]string{
		{"vet", "./..."}, {"test", "-count=1", "./..."}, {"run", ".", "-steps", "1"}, {"run", ".", "-steps", "2"},
		{"run", ".", "-steps", "2"}, // it is finished
	} {
		c := exec.CommandContext(t.Context(), "go", args...)
		c.Dir = "my-agent"
		c.Env = append(os.Environ(), "GOWORK=off")
		out, err := c.CombinedOutput()
		if err != nil {
			t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, out)
		}
		if args[0] == "run" {
			printed = append(printed, string(out))
		}
	}
	if strings.Contains(printed[1], "step  0") || !strings.Contains(printed[1], "step  1") {
		t.Errorf("the second run prints %s", printed[1])
	}
	if last := printed[2]; !strings.HasPrefix(last, "reward 0.") || !strings.HasSuffix(printed[1], last) ||
		!strings.Contains(last, "after 2 steps; the run is in .art/") {
		t.Errorf("when it is finished it prints %s, and before %s", last, printed[1])
	}
	if code := runCommand([]string{"init", "--replace", checkout, "my-agent"}, &stdout, &stderr); code != 1 {
		t.Errorf("a folder with files: status %d", code)
	}
}

func TestInit_Refused(t *testing.T) {
	dir := t.TempDir()
	for name, c := range map[string]struct {
		args []string
		code int
		want string
	}{
		"no folder":      {[]string{"init"}, 2, "want one DIR"},
		"bad name":       {[]string{"init", filepath.Join(dir, "a b")}, 2, "letters"},
		"no version":     {[]string{"init", filepath.Join(dir, "x")}, 1, "--replace"},
		"not a checkout": {[]string{"init", "--replace", dir, filepath.Join(dir, "x")}, 1, "go.mod"},
	} {
		var stdout, stderr bytes.Buffer
		if code := runCommand(c.args, &stdout, &stderr); code != c.code || !strings.Contains(stderr.String(), c.want) {
			t.Errorf("%s: status %d, %s", name, code, stderr.String())
		}
	}
}
