package wandb_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/backend/server/wandb"
	"github.com/goart-dev/art/internal/dev/arttest"
	"github.com/goart-dev/art/internal/wandbwire"
)

// reason is the error that the events of a training end with, "" if it has succeeded.
func reason(events []wandbwire.Event) string {
	text, _ := events[len(events)-1].Data["error_message"].(string)
	return text
}

// TestJob_Panics: a panic in a training, and an error with a path, fail the training, and tell nothing of the server.
func TestJob_Panics(t *testing.T) {
	dir := t.TempDir()
	faults := []func() error{
		func() error { panic("a secret of " + dir) },
		func() error { return &os.PathError{Op: "open", Path: dir, Err: errors.New("no")} },
		func() error { return fmt.Errorf("%w: %s is no adapter", art.ErrInvalid, dir) },
	}
	backend := &arttest.Backend{}
	backend.Learn = func(context.Context, *art.Model, []*art.TrajectoryGroup, *art.TrainConfig) error {
		if len(faults) == 0 {
			return nil
		}
		fault := faults[0]
		faults = faults[1:]
		return fault()
	}
	c := serve(t, backend, t.TempDir())
	m := c.register(t)
	for len(faults) > 0 {
		if text := reason(c.events(t, c.start(t, c.job(t, m, "{}")))); text == "" || strings.Contains(text, dir) {
			t.Errorf("the reason is %q", text)
		}
	}
	if got := kinds(c.events(t, c.start(t, c.job(t, m, "{}")))); !slices.Equal(got, done) {
		t.Errorf("events %v", got)
	}
}

// TestJob_KilledThreeTimes: a training that ends the process is begun three times, and failed at the fourth start; the
// next one goes on. A process that is killed is one whose folder is copied as it is.
func TestJob_KilledThreeTimes(t *testing.T) {
	dir, released := t.TempDir(), make(chan struct{})
	learn := func() (*arttest.Backend, chan struct{}) {
		began := make(chan struct{})
		tell := sync.OnceFunc(func() { close(began) })
		return &arttest.Backend{Learn: func(context.Context, *art.Model, []*art.TrajectoryGroup, *art.TrainConfig) error {
			tell()
			<-released
			return nil
		}}, began
	}
	var poison, next string
	for start := range 3 {
		backend, began := learn()
		folder := dir
		c := serve(t, backend, folder)
		if start == 0 {
			m := c.register(t)
			body := c.job(t, m, "{}")
			poison, next = c.start(t, body), c.start(t, body)
		}
		<-began
		dir = t.TempDir()
		if err := os.CopyFS(dir, os.DirFS(folder)); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { close(released) }) // before the servers are closed
	c := serve(t, &arttest.Backend{}, dir)
	if text := reason(c.events(t, poison)); !strings.Contains(text, "stopped 3 times") {
		t.Errorf("the reason is %q", text)
	}
	if got := kinds(c.events(t, next)); !slices.Equal(got, done) {
		t.Errorf("events %v", got)
	}
}

// TestStore_Damaged: of damaged documents only what they describe is not served.
func TestStore_Damaged(t *testing.T) {
	dir, backend := t.TempDir(), &arttest.Backend{}
	var m wandbwire.Model
	var job string
	t.Run("before", func(t *testing.T) {
		c := serve(t, backend, dir)
		m = c.register(t)
		job = c.start(t, c.job(t, m, "{}"))
		c.events(t, job)
	})
	damaged := []string{"models/x.json", "jobs/job-x.json", "usage.json"}
	for _, name := range damaged {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("{"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c := serve(t, backend, dir)
	if got := kinds(c.events(t, job)); !slices.Equal(got, done) {
		t.Errorf("events %v", got)
	}
	for _, name := range damaged {
		if _, err := os.Stat(filepath.Join(dir, name+".damaged")); err != nil {
			t.Error(err)
		}
	}
	_, err := wandb.New(backend, &wandb.Options{Dir: dir, Bases: []wandb.Base{{Name: "tiny"}}})
	if !errors.Is(err, art.ErrLocked) || !strings.Contains(err.Error(), fmt.Sprint(os.Getpid())) {
		t.Errorf("a second server: %v", err)
	}
}

// TestNames_Refused: names that cannot be those of files everywhere are refused, and no answer has a path of the
// server.
func TestNames_Refused(t *testing.T) {
	dir := t.TempDir()
	c := serve(t, &arttest.Backend{}, dir)
	line := `{"messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b"}]}`
	for _, name := range []string{
		strings.Repeat("a", 300), strings.Repeat("é", 60), "CON", "a?b*c", "nul.txt", "a.", "a ", "a\x01b", "\xff", "..",
	} {
		for _, path := range []string{"games/" + url.PathEscape(name), url.PathEscape(name) + "/data"} {
			if strings.Contains(path, "..") {
				continue // the mux cleans the path
			}
			status, text := c.do(t, "PUT", "/v1/preview/artifacts/"+path, line, nil)
			if status != http.StatusBadRequest || strings.Contains(text, dir) {
				t.Errorf("artifact %q: status %d: %s", name, status, text)
			}
		}
		for _, body := range []map[string]string{
			{"base_model": "tiny", "name": name}, {"base_model": "tiny", "name": "a", "project": name},
		} {
			if status, text := c.do(t, "POST", "/v1/preview/models", body, nil); status != http.StatusBadRequest {
				t.Errorf("model %q: status %d: %s", name, status, text)
			}
		}
	}
	if status, text := c.do(t, "PUT", "/v1/preview/artifacts/games/a-1.2_b", line, nil); status != http.StatusOK {
		t.Errorf("status %d: %s", status, text)
	}
	if err := os.WriteFile(filepath.Join(dir, "artifacts", "one", "blocked"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	status, text := c.do(t, "PUT", "/v1/preview/artifacts/blocked/b", line, nil)
	if status != http.StatusInternalServerError || strings.Contains(text, dir) {
		t.Errorf("status %d: %s", status, text)
	}
}
