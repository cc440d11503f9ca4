package publish_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/publish"
	"github.com/goart-dev/art/internal/dev/arttest"
	"github.com/goart-dev/art/internal/runs"
)

// stored is a backend with a run directory that has steps 0 to 3.
type stored struct {
	*arttest.Backend
	dir string
}

// Dir returns the run directory.
func (b stored) Dir(*art.Model) (string, error) { return b.dir, nil }

func newModel(t *testing.T) *art.Model {
	t.Helper()
	run, err := runs.Open(t.TempDir(), "p", "player", nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { run.Close() })
	if err := run.WriteModel(map[string]string{"name": "player"}); err != nil {
		t.Fatal(err)
	}
	for step := range 4 {
		err := run.Commit(step, func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "adapter.txt"), []byte{byte('0' + step)}, 0o644)
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	m := art.NewModel("player", &art.ModelOptions{Project: "p"})
	if err := m.Register(t.Context(), stored{&arttest.Backend{}, run.Dir()}); err != nil {
		t.Fatal(err)
	}
	return m
}

func commit(e *art.Events, m *art.Model, step int) {
	e.Commit(art.Commit{Model: m, Result: &art.TrainResult{Step: step}})
}

// published are the steps in a folder, with their contents.
func published(t *testing.T, dir string) string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "p", "player", "*", "adapter.txt"))
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, filepath.Base(filepath.Dir(path))+"="+string(data))
	}
	return strings.Join(out, " ")
}

func TestFolder(t *testing.T) {
	dir, m := t.TempDir(), newModel(t)
	p := publish.New(publish.Folder(dir), nil)
	for _, step := range []int{1, 2, 2} {
		commit(p.Events(), m, step)
	}
	if err := p.Close(t.Context()); err != nil || p.Sent() != 3 {
		t.Errorf("%d sent, error %v", p.Sent(), err)
	}
	if got := published(t, dir); got != "step1=1 step2=2" {
		t.Errorf("published %s", got)
	}
	commit(p.Events(), m, 3)
	if err := p.Close(t.Context()); err == nil || !strings.Contains(err.Error(), "player@3") {
		t.Errorf("after Close: error %v", err)
	}
}

func TestBest(t *testing.T) {
	dir, m := t.TempDir(), newModel(t)
	p := publish.New(publish.Folder(dir), &publish.Options{Best: "val/reward"})
	for step, reward := range []float64{0.1, 0.5, 0.3, 0.6} {
		metrics := map[string]float64{"val/reward": reward}
		p.Events().Log(art.LogEvent{Model: m, Split: "val", Step: step, Metrics: metrics})
	}
	if err := p.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if got := published(t, dir); got != "step0=0 step1=1 step3=3" {
		t.Errorf("published %s", got)
	}
}

// target fails as often as it is told, and blocks while it is held.
type target struct {
	mu       sync.Mutex
	failures int
	steps    []int
	hold     chan struct{}
}

// Publish implements [publish.Target].
func (f *target) Publish(ctx context.Context, c *publish.Checkpoint) error {
	if f.hold != nil {
		select {
		case <-f.hold:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.failures--; f.failures >= 0 {
		return errors.New("it is away")
	}
	f.steps = append(f.steps, c.Step)
	return nil
}

// A metric without a split is never logged: it is an error that Close returns.
func TestBest_NoSplit(t *testing.T) {
	p := publish.New(publish.Folder(t.TempDir()), &publish.Options{Best: "reward"})
	if err := p.Close(t.Context()); !errors.Is(err, art.ErrInvalid) || !strings.Contains(err.Error(), `"val/reward"`) {
		t.Error(err)
	}
}

func TestRetries(t *testing.T) {
	m := newModel(t)
	for retries, want := range map[int]bool{2: true, 1: false} {
		to := &target{failures: 2}
		p := publish.New(to, &publish.Options{Retries: retries, Backoff: time.Microsecond})
		commit(p.Events(), m, 1)
		err := p.Close(t.Context())
		if sent := err == nil && len(to.steps) == 1; sent != want {
			t.Errorf("%d retries: sent %v, error %v", retries, to.steps, err)
		}
	}
}

// TestBlocked: a target that hangs holds nobody up, and what it cannot take is reported.
func TestBlocked(t *testing.T) {
	m, to := newModel(t), &target{hold: make(chan struct{})}
	p := publish.New(to, &publish.Options{Queue: 1})
	for step := range 4 {
		commit(p.Events(), m, step) // returns at once
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := p.Close(ctx); err == nil || !strings.Contains(err.Error(), "dropped") || p.Sent() != 0 {
		t.Errorf("%d sent, error %v", p.Sent(), err)
	}
	commit(p.Events(), m, 99)
	if err := p.Close(t.Context()); err == nil || !strings.Contains(err.Error(), "player@99") {
		t.Errorf("a step without a checkpoint: error %v", err)
	}
}
