// Package publish sends checkpoints to other places when their step is committed, beside training and without ever
// holding it up:
//
//	to := publish.New(publish.Folder("/mnt/models"), &publish.Options{Best: "val/reward"})
//	model := art.NewModel("player", &art.ModelOptions{Events: to.Events()})
//	...
//	err = to.Close(ctx) // waits for what is not sent yet
//
// [Hub] and [Wandb] are other targets. The backend must keep run directories, as backend/local does. What is sent is
// copied when its step is committed, so that retention may delete it meanwhile.
package publish

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/internal/runs"
)

// Checkpoint is what is sent.
type Checkpoint struct {
	Project, Name, Base string
	Step                int
	// Dir has its files: the adapter in PEFT's format, and the optimizer. They are deleted after Publish has returned.
	Dir string
}

// Target is where checkpoints are sent to. Publish is called with one at a time, and again after an error: a checkpoint
// that is there already is replaced, or left as it is.
type Target interface {
	Publish(ctx context.Context, c *Checkpoint) error
}

// Options of [New]. Zero values are the defaults.
type Options struct {
	// Best is a metric, such as "val/reward": a checkpoint is sent when its step is logged with the highest value so far.
	// Default: every checkpoint is sent.
	Best string
	// Retries is how often a checkpoint that could not be sent is tried again. Default 8; negative is never.
	Retries int
	// Backoff is the wait before the first retry, and doubles with each, up to 5 minutes. Default 1 second.
	Backoff time.Duration
	// Queue bounds the checkpoints that wait. The oldest is dropped for a new one. Default 16.
	Queue int
	// Logger receives what failed and what was dropped. nil discards.
	Logger *slog.Logger
}

// dirs is a backend with run directories.
type dirs interface {
	Dir(m *art.Model) (string, error)
}

// Publisher sends checkpoints.
type Publisher struct {
	target Target
	opts   Options
	life   context.Context // ends when Close gives up
	quit   context.CancelFunc
	work   sync.WaitGroup

	mu      sync.Mutex
	closed  bool
	waiting []*Checkpoint
	busy    bool
	best    map[*art.Model]float64
	sent    int
	failed  []error
}

// New makes a publisher. opts may be nil.
func New(target Target, opts *Options) *Publisher {
	p := &Publisher{target: target, best: map[*art.Model]float64{}}
	if opts != nil {
		p.opts = *opts
	}
	p.opts.Retries = max(cmp.Or(p.opts.Retries, 8), 0)
	p.opts.Backoff, p.opts.Queue = cmp.Or(p.opts.Backoff, time.Second), max(cmp.Or(p.opts.Queue, 16), 1)
	if p.opts.Logger == nil {
		p.opts.Logger = slog.New(slog.DiscardHandler)
	}
	p.life, p.quit = context.WithCancel(context.Background())
	if best := p.opts.Best; best != "" && !strings.Contains(best, "/") {
		p.fail(fmt.Errorf("%w: Best is %q, want a metric with its split, \"val/%s\": no checkpoint is sent", art.ErrInvalid,
			best, best))
	}
	return p
}

// Events are those of the models whose checkpoints are sent.
func (p *Publisher) Events() *art.Events {
	if p.opts.Best == "" {
		return &art.Events{Commit: func(c art.Commit) { p.add(c.Model, c.Result.Step) }}
	}
	return &art.Events{Log: p.logged}
}

// logged adds the step of a row that is better than those before.
func (p *Publisher) logged(e art.LogEvent) {
	x, ok := e.Metrics[p.opts.Best]
	if !ok {
		return
	}
	p.mu.Lock()
	best, known := p.best[e.Model]
	better := !known || x > best
	if better {
		p.best[e.Model] = x
	}
	p.mu.Unlock()
	if better {
		p.add(e.Model, e.Step)
	}
}

// add copies a checkpoint, and queues it.
func (p *Publisher) add(m *art.Model, step int) {
	c, err := stage(m, step)
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case err != nil:
		p.fail(fmt.Errorf("%s@%d cannot be copied: %w", m.Name(), step, err))
		return
	case p.closed:
		p.fail(fmt.Errorf("%s@%d came after Close", m.Name(), step))
		p.drop(c)
		return
	}
	if p.waiting = append(p.waiting, c); len(p.waiting) > p.opts.Queue {
		p.fail(fmt.Errorf("%s@%d was dropped: %d checkpoints wait", c.Name, p.waiting[0].Step, p.opts.Queue))
		p.drop(p.waiting[0])
		p.waiting = p.waiting[1:]
	}
	if !p.busy {
		p.busy = true
		p.work.Go(p.send)
	}
}

// stage copies a checkpoint into a folder of its own.
func stage(m *art.Model, step int) (*Checkpoint, error) {
	backend, ok := m.Backend().(dirs)
	if !ok {
		return nil, fmt.Errorf("%w: %T has no run directories", art.ErrUnsupported, m.Backend())
	}
	run, err := backend.Dir(m)
	if err != nil {
		return nil, err
	}
	reader, err := runs.NewReader(run)
	if err != nil {
		return nil, err
	}
	from, err := reader.Checkpoint(step)
	if err != nil {
		return nil, err
	}
	var about struct{ Base string } // that of the options may be left to the backend
	if err := reader.Model(&about); err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "art-publish-")
	if err != nil {
		return nil, err
	}
	c := &Checkpoint{Project: m.Options().Project, Name: m.Name(), Base: about.Base, Step: step, Dir: dir}
	if err := runs.CopyCheckpoint(from)(dir); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return c, nil
}

// fail notes what was not sent. mu is held.
func (p *Publisher) fail(err error) {
	p.opts.Logger.Error("checkpoint was not published", "error", err)
	p.failed = append(p.failed, err)
}

// drop deletes the copy of a checkpoint.
func (p *Publisher) drop(c *Checkpoint) {
	if err := os.RemoveAll(c.Dir); err != nil {
		p.opts.Logger.Warn("copy of a checkpoint was not deleted", "folder", c.Dir, "error", err)
	}
}

// send sends what waits, until nothing does.
func (p *Publisher) send() {
	for {
		p.mu.Lock()
		if len(p.waiting) == 0 {
			p.busy = false
			p.mu.Unlock()
			return
		}
		c := p.waiting[0]
		p.waiting = p.waiting[1:]
		p.mu.Unlock()
		err := p.try(c)
		p.drop(c)
		p.mu.Lock()
		if err != nil {
			p.fail(fmt.Errorf("%s@%d: %w", c.Name, c.Step, err))
		} else {
			p.sent++
		}
		p.mu.Unlock()
	}
}

// try sends a checkpoint, again after errors.
func (p *Publisher) try(c *Checkpoint) error {
	for attempt := 0; ; attempt++ {
		err := p.target.Publish(p.life, c)
		if err == nil || attempt == p.opts.Retries || p.life.Err() != nil {
			return err
		}
		p.opts.Logger.Warn("checkpoint is sent again", "model", c.Name, "step", c.Step, "error", err)
		longest := min(5*time.Minute, p.opts.Backoff<<min(attempt, 16))
		select {
		case <-time.After(longest - rand.N(longest/4+1)):
		case <-p.life.Done():
			return errors.Join(err, p.life.Err())
		}
	}
}

// Sent returns how many checkpoints were sent.
func (p *Publisher) Sent() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.sent
}

// Close waits until everything is sent, or gives up when ctx ends. It returns an error that lists what was not sent.
func (p *Publisher) Close(ctx context.Context) error {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	stop := context.AfterFunc(ctx, p.quit)
	p.work.Wait()
	stop()
	p.quit()
	p.mu.Lock()
	defer p.mu.Unlock()
	return errors.Join(p.failed...)
}

// Folder is a target that copies checkpoints to DIR/PROJECT/NAME/stepN. One that is there is left as it is.
func Folder(dir string) Target { return folder(dir) }

type folder string

// Publish implements [Target]. The folder appears as a whole.
func (f folder) Publish(_ context.Context, c *Checkpoint) error {
	parent := filepath.Join(string(f), c.Project, c.Name)
	to := filepath.Join(parent, fmt.Sprintf("step%d", c.Step))
	if _, err := os.Stat(to); err == nil {
		return nil
	}
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return err
	}
	temp, err := os.MkdirTemp(parent, ".step-")
	if err != nil {
		return err
	}
	err = os.Chmod(temp, 0o755) //nolint:gosec // it is for others to read
	if err == nil {
		err = os.CopyFS(temp, os.DirFS(c.Dir))
	}
	if err == nil {
		err = os.Rename(temp, to)
	}
	if err != nil {
		return errors.Join(err, os.RemoveAll(temp))
	}
	return nil
}
