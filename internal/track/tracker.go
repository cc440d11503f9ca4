package track

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/goart-dev/art"
)

// Options of [New].
type Options struct {
	// Name of the tracker, for its log.
	Name string
	// Queue is the number of events that may wait, each with its trajectories; further ones are dropped. Default 64.
	Queue int
	// Timeout bounds [Tracker.Close], which tries again until then. Default 10 s.
	Timeout time.Duration
	// Config is added to the configuration of each run.
	Config map[string]any
	// Logger is told of failures and of what is dropped. Default: none.
	Logger *slog.Logger
	// Open begins or resumes what is stored of a model. It is tried again after an error.
	Open func(ctx context.Context, m *art.Model) (Run, error)
}

// Tracker hands events to runs on a goroutine of its own, so that training never waits for it.
type Tracker struct {
	opts   Options
	queue  *Queue[event]
	done   chan struct{}
	once   sync.Once
	ctx    context.Context // ends when Close has waited long enough
	cancel context.CancelFunc
	gap    atomic.Bool // an event was dropped since the last look

	runs  map[*art.Model]*run // of the goroutine, until done
	order []*run
	err   error // of Close, set before done
}

// event is what a callback was given, one of the pointers; none of a model that was registered.
type event struct {
	at     time.Time
	model  *art.Model
	step   int // of the model, at the time
	start  *art.TrainStart
	commit *art.Commit
	log    *art.LogEvent
	fail   *art.TrainError
}

// New starts a tracker.
func New(opts Options) *Tracker {
	opts.Queue = cmp.Or(opts.Queue, 64)
	opts.Timeout = cmp.Or(opts.Timeout, 10*time.Second)
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	t := &Tracker{
		opts: opts, queue: NewQueue[event](opts.Queue), done: make(chan struct{}),
		runs: map[*art.Model]*run{},
	}
	t.ctx, t.cancel = context.WithCancel(context.Background())
	go t.work()
	return t
}

// Events returns the callbacks of the tracker, for [art.ModelOptions].
func (t *Tracker) Events() *art.Events {
	return &art.Events{
		Register:   func(e art.Registration) { t.send(event{model: e.Model, step: e.Step}) },
		TrainStart: func(e art.TrainStart) { t.send(event{model: e.Model, step: e.Step - 1, start: &e}) },
		Commit:     func(e art.Commit) { t.send(event{model: e.Model, step: e.Result.Step - 1, commit: &e}) },
		TrainError: func(e art.TrainError) { t.send(event{model: e.Model, step: e.Step - 1, fail: &e}) },
		Log:        func(e art.LogEvent) { t.send(event{model: e.Model, step: e.Model.Step(), log: &e}) },
	}
}

// Dropped returns how many events, and how many batches of trajectories, were not stored because too many waited. Where
// the backend keeps a history, the metrics of dropped events are stored later.
func (t *Tracker) Dropped() int { return t.queue.Lost() }

// Close stores what waits, for [Options].Timeout at most, and ends the runs. The error says what could not be stored. A
// second call returns the same.
func (t *Tracker) Close() error {
	t.once.Do(func() {
		timer := time.AfterFunc(t.opts.Timeout, t.cancel)
		defer timer.Stop()
		t.queue.Close()
		<-t.done
		t.cancel()
	})
	<-t.done
	return t.err
}

// send queues an event, unless there is no room.
func (t *Tracker) send(e event) {
	e.at = time.Now()
	if t.queue.Send(e) {
		return
	}
	if !t.gap.Swap(true) {
		t.opts.Logger.Warn("tracker is too slow: events are dropped", "tracker", t.opts.Name)
	}
}

// work hands events to runs until Close.
func (t *Tracker) work() {
	defer close(t.done)
	retry := time.NewTicker(time.Second)
	defer retry.Stop()
	for {
		select {
		case e := <-t.queue.Items():
			t.handle(e)
		case <-retry.C:
			t.flush()
		case <-t.queue.Closed():
			t.finish()
			return
		}
	}
}

// handle stores an event, and then as many of those that wait as the format takes at once.
func (t *Tracker) handle(e event) {
	t.take(e)
	for range len(t.queue.Items()) {
		t.take(<-t.queue.Items())
	}
	t.flush()
}

func (t *Tracker) take(e event) {
	r := t.runs[e.model]
	if r == nil {
		r = newRun(t, e.model, e.step)
		t.runs[e.model] = r
		t.order = append(t.order, r)
	}
	r.take(e)
}

// flush stores what waits. After dropped events it looks for their metrics in the history.
func (t *Tracker) flush() {
	gap := t.gap.Swap(false)
	for _, r := range t.order {
		r.stale = r.stale || gap
		r.flush(time.Now())
	}
}

// finish stores what waits, ends the runs and says what was lost.
func (t *Tracker) finish() {
	for range len(t.queue.Items()) {
		t.take(<-t.queue.Items())
	}
	gap := t.gap.Swap(false)
	var problems []error
	for _, r := range t.order {
		r.stale = r.stale || gap
		if err := r.close(t.ctx); err != nil {
			problems = append(problems, fmt.Errorf("%s: run %q: %w", t.opts.Name, r.model.Name(), err))
		}
	}
	if n := t.Dropped(); n > 0 {
		t.opts.Logger.Warn("tracker dropped events", "tracker", t.opts.Name, "events", n)
	}
	t.err = errors.Join(problems...)
}
