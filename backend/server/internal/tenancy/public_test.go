package tenancy

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/goart-dev/art"
)

// TestPublic_NoPath: what a tenant reads of an error has no path of the server.
func TestPublic_NoPath(t *testing.T) {
	dir := t.TempDir()
	_, notThere := os.Open(filepath.Join(dir, "secret"))
	for _, err := range []error{
		notThere, fmt.Errorf("saving: %w", notThere), os.Rename(filepath.Join(dir, "a"), filepath.Join(dir, "b")),
		&os.PathError{Op: "write", Path: dir, Err: syscall.ENOSPC},
		&art.Error{Op: "open run", Err: fmt.Errorf("%w: no", art.ErrStorage), Hint: "check that " + dir + " can be written to"},
		fmt.Errorf("%w: %s has an adapter of another rank", art.ErrInvalid, dir),
		errors.New(dir + ": no"), fmt.Errorf("%q is no folder", dir), fmt.Errorf("no (%s)", dir), fmt.Errorf("x=%s", dir),
		errors.New(`C:\Users\ann\art: no`),
	} {
		text := Public(err)
		if strings.Contains(text, dir) || strings.Contains(text, filepath.Base(dir)) || strings.Contains(text, "Users") {
			t.Errorf("%v: %s", err, text)
		}
	}
	for _, same := range []string{
		"want wandb-artifact:///ann/games/NAME:v0", "datum 3 has 1/2 of it", "tinker://run/weights/a is no path", "and/or",
	} {
		if got := Public(errors.New(same)); got != same {
			t.Errorf("%q is told as %q", same, got)
		}
	}
	if text := Public(fmt.Errorf("x: %w", syscall.ENOSPC)); !strings.Contains(text, "disk is full") {
		t.Error(text)
	}
}

// TestRecovered_StackInTheLog: a panic is an error without the panic, and the log has both.
func TestRecovered_StackInTheLog(t *testing.T) {
	var log bytes.Buffer
	err := Recovered(slog.New(slog.NewTextHandler(&log, nil)), "a test", func() error { panic("secret") })
	if !IsPanic(err) || strings.Contains(err.Error(), "secret") {
		t.Errorf("error %v", err)
	}
	if text := log.String(); !strings.Contains(text, "secret") || !strings.Contains(text, "public_test.go") {
		t.Error(text)
	}
	if err := Recovered(discard, "", func() error { return syscall.EIO }); !errors.Is(err, syscall.EIO) || IsPanic(err) {
		t.Errorf("error %v", err)
	}
}

func TestCheckName(t *testing.T) {
	for _, name := range []string{
		"a", "step-000001", "my model", "v1.2", "Zoë", "模型", "con-1", "console", "a.con", strings.Repeat("x", maxName),
	} {
		if err := CheckName(name); err != nil {
			t.Error(err)
		}
	}
	for _, name := range []string{
		"", ".", "..", ".hidden", "a.", "a ", " a", "a/b", `a\b`, "a:b", "a*b", "a?b", "a<b", "a>b", `a"b`, "a|b", "a@b",
		"a%b", "a#b", "a\nb", "a\x00b", "a\x7fb", "a\u202eb", "a\u200bb", "\xff", "a\ufffdb", "CON", "con", "nul.txt",
		"NUL .txt", "Com1.tar.gz", "lpt¹", "CONIN$", strings.Repeat("x", maxName+1), strings.Repeat("é", maxName),
	} {
		if err := CheckName(name); err == nil {
			t.Errorf("%q is taken", name)
		}
	}
}
