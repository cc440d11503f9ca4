package local

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"testing"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/internal/runs"
)

// TestTrain_SizeOfStep: when the first step of a process is stored, the log and the progress say what it takes; where
// checkpoints are deleted only the log does.
func TestTrain_SizeOfStep(t *testing.T) {
	for name, retention := range map[string]*art.Retention{"all": nil, "newest": {Newest: 1}} {
		var progress, log bytes.Buffer
		b, err := Open(t.Context(), &Options{
			Dir: t.TempDir(), Slots: 8, Context: 128, Progress: &progress, Logger: slog.New(slog.NewTextHandler(&log, nil)),
		})
		if err != nil {
			t.Fatal(err)
		}
		defer b.Close()
		m := art.NewModel("m", &art.ModelOptions{Retention: retention, Events: &art.Events{}})
		if err := m.Register(t.Context(), b); err != nil {
			t.Fatal(err)
		}
		if progress.Len() > 0 {
			t.Errorf("%s: before a step is stored: %q", name, progress.String())
		}
		examples := []*art.Trajectory{art.NewTrajectory(art.User("yes or no"), art.Assistant("maybe"))}
		for range 2 {
			if _, err := m.TrainSFT(t.Context(), examples, nil); err != nil {
				t.Fatal(err)
			}
		}
		dir, err := b.Dir(m)
		if err != nil {
			t.Fatal(err)
		}
		size := runs.CheckpointBytes(dir, 2)
		if size < 1000 {
			t.Fatalf("a step of %d bytes", size)
		}
		if strings.Count(log.String(), "size of a step") != 1 || !strings.Contains(log.String(), fmt.Sprintf("bytes=%d",
			size)) {
			t.Errorf("%s: of %d bytes the log has %s", name, size, log.String())
		}
		want := fmt.Sprintf("each step of m takes %.1f MB in %s, and all are kept: ModelOptions.Retention keeps fewer\n",
			float64(size)/1e6, dir)
		if retention != nil {
			want = ""
		}
		if progress.String() != want {
			t.Errorf("%s: %q, want %q", name, progress.String(), want)
		}
	}
}

// TestProgress_File: a file that is no terminal gets no bar, which would draw its lines again and again.
func TestProgress_File(t *testing.T) {
	f, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	b := &Backend{opts: Options{Progress: f}}
	bar := b.bytesProgress("weights")
	bar.set(1, 10)
	bar.finish()
	if info, err := f.Stat(); err != nil || info.Size() != 0 {
		t.Errorf("%v, %v", info.Size(), err)
	}
	var buffer bytes.Buffer
	b.opts.Progress = &buffer
	bar = b.bytesProgress("weights")
	bar.set(1, 10)
	bar.finish()
	if buffer.Len() == 0 {
		t.Error("a writer that is asked for gets the bar")
	}
}
