package tenancy

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/internal/stable"
)

var discard = slog.New(slog.DiscardHandler)

type document struct {
	ID   string
	Text string
}

func (d *document) id() string { return d.ID }

// TestFolder_Locked: a second server ends at once, and names the holder.
func TestFolder_Locked(t *testing.T) {
	dir := t.TempDir()
	f := openFolder(t, dir, stable.Disk{})
	_, err := OpenFolder(dir, discard, stable.Disk{})
	if !errors.Is(err, art.ErrLocked) || !strings.Contains(err.Error(), fmt.Sprint(os.Getpid())) {
		t.Fatalf("error %v", err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	openFolder(t, dir, stable.Disk{})
}

// TestFolder_Replaced: a server whose folder is gone writes nothing into one that came in its place.
func TestFolder_Replaced(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	f := openFolder(t, dir, stable.Disk{})
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	openFolder(t, dir, stable.Disk{})
	if err := f.WriteJSON(document{}, "runs", "a.json"); err == nil {
		t.Fatal("it is written")
	}
}

// TestFolder_Damaged: a damaged document is set aside, and the others are read.
func TestFolder_Damaged(t *testing.T) {
	f := openFolder(t, t.TempDir(), stable.Disk{})
	for _, id := range []string{"a", "b"} {
		if err := f.WriteJSON(document{ID: id}, "runs", id+".json"); err != nil {
			t.Fatal(err)
		}
	}
	damaged := map[string]string{
		"cut.json": `{"ID":"cu`, "empty.json": "", "other.json": `{"ID":"a"}`, "null.json": "null",
	}
	for round := 1; round <= 2; round++ {
		for name, content := range damaged {
			write(t, f.Path("runs", name), []byte(content))
		}
		write(t, f.Path("usage.json"), []byte("{"))
		list, err := ReadAll(f, "runs", (*document).id)
		if err != nil || len(list) != 2 {
			t.Fatalf("%d documents: %v", len(list), err)
		}
		used := document{ID: "before"}
		if ReadJSON(f, &used, "usage.json"); used.ID != "before" {
			t.Errorf("read %+v", used)
		}
	}
	for name, content := range damaged {
		for _, ending := range []string{".damaged", ".damaged-2"} {
			if got, err := os.ReadFile(f.Path("runs", name+ending)); err != nil || string(got) != content {
				t.Errorf("%s%s: %q, %v", name, ending, got, err)
			}
		}
	}
}

// TestFolder_Faults: whatever change fails, a document is what it was or what was written, and no other is touched.
func TestFolder_Faults(t *testing.T) {
	for at := range 30 {
		for _, fault := range []*injector{
			{err: syscall.ENOSPC, lasts: 100}, {err: syscall.EIO}, {err: syscall.EIO, done: true},
		} {
			dir := t.TempDir()
			fault.at = -1
			f := openFolder(t, dir, stable.Disk{Hook: fault.change})
			docs := []document{{"a", "old"}, {"b", "old"}}
			for _, d := range docs {
				if err := f.WriteJSON(d, "runs", d.ID+".json"); err != nil {
					t.Fatal(err)
				}
			}
			fault.at = fault.seen + at
			err := f.WriteJSON(document{"a", "new"}, "runs", "a.json")
			if err == nil {
				docs[0].Text = "new"
			}
			fault.at = -1
			if err := f.Close(); err != nil {
				t.Fatal(err)
			}
			list, readErr := ReadAll(openFolder(t, dir, stable.Disk{}), "runs", (*document).id)
			if readErr != nil || len(list) != 2 || *list[1] != docs[1] {
				t.Fatalf("change %d: %v, %v", at, list, readErr)
			}
			if got := list[0].Text; got != docs[0].Text && (err == nil || got != "new") {
				t.Fatalf("change %d: it is %q, error %v", at, got, err)
			}
			if left, _ := filepath.Glob(filepath.Join(dir, "runs", stable.TempPrefix+"*")); left != nil {
				t.Fatalf("change %d leaves %q", at, left)
			}
		}
	}
}

// TestFolder_SyncsTheFolder: a new name is on disk when a write returns.
func TestFolder_SyncsTheFolder(t *testing.T) {
	var ops []string
	hook := func(op, path string, do func() error) error {
		ops = append(ops, op+" "+filepath.Base(path))
		return do()
	}
	f := openFolder(t, t.TempDir(), stable.Disk{Hook: hook})
	ops = nil
	if err := f.WriteJSON(document{}, "runs", "a.json"); err != nil {
		t.Fatal(err)
	}
	want := []string{"create .tmp-a.json", "write .tmp-a.json", "sync .tmp-a.json", "rename a.json", "syncdir runs"}
	if !reflect.DeepEqual(ops, want) {
		t.Errorf("%q", ops)
	}
	ops = nil
	j, _, err := f.OpenJournal("runs", "a.journal")
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	if ops[len(ops)-1] != "syncdir runs" {
		t.Errorf("%q", ops)
	}
}
