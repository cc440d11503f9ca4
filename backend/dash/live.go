package dash

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/goart-dev/art"
	"github.com/goart-dev/art/internal/runs"
)

const (
	pingEvery = 15 * time.Second       // a comment keeps proxies from closing a stream
	sendEvery = 250 * time.Millisecond // between two messages of a stream
)

// live tells browsers what has changed. A browser that is behind gets the newest state, not what it has missed, so
// nothing queues up.
type live struct {
	ctx   context.Context // ends the streams
	judge *Judge
	poke  chan struct{} // look at the folder now

	mu       sync.Mutex
	versions map[string]string // of the runs
	tasks    map[string]task   // going on in this process
	clients  map[chan struct{}]bool
}

// task is a gather or a training that goes on.
type task struct {
	Text  string `json:"text"`
	Done  int    `json:"done"`
	Total int    `json:"total"`
}

// message is what a stream sends.
type message struct {
	Runs    map[string]string `json:"runs,omitempty"` // those that are new or have changed
	Tasks   []task            `json:"tasks"`
	Waiting int               `json:"waiting"` // groups that wait for a person
}

func newLive(ctx context.Context, judge *Judge) *live {
	l := &live{ctx: ctx, judge: judge, poke: make(chan struct{}, 1), versions: map[string]string{},
		tasks: map[string]task{}, clients: map[chan struct{}]bool{}}
	judge.onChange(l.wake)
	return l
}

// watch looks at the folder until ctx ends, while somebody is there to be told.
func (l *live) watch(ctx context.Context, s *store, every time.Duration) {
	ticks := time.NewTicker(every)
	defer ticks.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticks.C:
		case <-l.poke:
		}
		if l.isWatched() {
			l.look(s)
		}
	}
}

func (l *live) isWatched() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.clients) > 0
}

// look notes the versions of all runs, and wakes the streams when one has changed.
func (l *live) look(s *store) {
	dirs, err := runs.List(s.root)
	if err != nil {
		return // the pages tell of it
	}
	versions := map[string]string{}
	for _, dir := range dirs {
		version, _ := versionOf(dir)
		sum := fnv.New64a()
		_, _ = sum.Write([]byte(version)) // it has no error
		versions[runs.ReferenceOf(dir).String()] = fmt.Sprintf("%x", sum.Sum64())
	}
	l.mu.Lock()
	changed := !maps.Equal(versions, l.versions)
	l.versions = versions
	l.mu.Unlock()
	if changed {
		l.wake()
	}
}

// wake wakes the streams.
func (l *live) wake() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for c := range l.clients {
		select {
		case c <- struct{}{}:
		default: // it has not taken the last one yet
		}
	}
}

// lookSoon makes watch look at the folder.
func (l *live) lookSoon() {
	select {
	case l.poke <- struct{}{}:
	default:
	}
}

// serve is a stream of events.
func (l *live) serve(w http.ResponseWriter, r *http.Request) {
	c := make(chan struct{}, 1)
	c <- struct{}{} // before others can wake it: it has room for one
	l.mu.Lock()
	l.clients[c] = true
	l.mu.Unlock()
	defer func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.clients, c)
	}()
	l.lookSoon()
	w.Header().Set("Content-Type", "text/event-stream")
	out := http.NewResponseController(w)
	sent := map[string]string{}
	pings := time.NewTicker(pingEvery)
	defer pings.Stop()
	for {
		text := ": still here\n\n"
		select {
		case <-r.Context().Done():
			return
		case <-l.ctx.Done():
			return
		case <-pings.C:
		case <-c:
			text = l.message(sent)
		}
		if _, err := w.Write([]byte(text)); err != nil || out.Flush() != nil {
			return
		}
		select {
		case <-r.Context().Done():
		case <-l.ctx.Done():
		case <-time.After(sendEvery):
		}
	}
}

// message returns the state as an event, and notes which versions it has.
func (l *live) message(sent map[string]string) string {
	m := message{Runs: map[string]string{}, Tasks: []task{}}
	_, m.Waiting = l.judge.first()
	l.mu.Lock()
	for name, version := range l.versions {
		if sent[name] != version {
			m.Runs[name], sent[name] = version, version
		}
	}
	for _, key := range sortedKeys(l.tasks) {
		m.Tasks = append(m.Tasks, l.tasks[key])
	}
	l.mu.Unlock()
	data, _ := json.Marshal(m) // strings and numbers can always be encoded
	return "data: " + string(data) + "\n\n"
}

// set shows a task.
func (l *live) set(key string, t task) {
	l.mu.Lock()
	l.tasks[key] = t
	l.mu.Unlock()
	l.wake()
}

// end takes a task away.
func (l *live) end(key string) {
	l.mu.Lock()
	delete(l.tasks, key)
	l.mu.Unlock()
	l.wake()
	l.lookSoon()
}

// Events returns callbacks that show rollouts and trainings of this process as they go, for [art.GatherOptions] and
// [art.ModelOptions]. They take microseconds.
func (h *Handler) Events() *art.Events {
	l := h.live
	gather := func(id uint64) string { return fmt.Sprintf("gather %d", id) }
	training := func(m *art.Model, step int) string { return fmt.Sprintf("train %s %d", m.Name(), step) }
	return &art.Events{
		GatherStart: func(e art.GatherStart) {
			l.set(gather(e.Gather), task{"rollouts", 0, e.Scenarios * e.GroupSize})
		},
		RolloutEnd: func(e art.RolloutEnd) {
			l.set(gather(e.Gather), task{gathered(e.Progress), e.Progress.Done, e.Progress.Total})
		},
		GatherEnd: func(e art.GatherEnd) { l.end(gather(e.Gather)) },
		TrainStart: func(e art.TrainStart) {
			l.set(training(e.Model, e.Step), task{fmt.Sprintf("%s trains step %d", e.Model.Name(), e.Step), 0, 0})
		},
		OptimizerStep: func(e art.OptimizerStep) {
			l.set(training(e.Model, e.Step), task{fmt.Sprintf("%s trains step %d", e.Model.Name(), e.Step), e.Done, e.Total})
		},
		Commit:     func(e art.Commit) { l.end(training(e.Model, e.Result.Step)) },
		TrainError: func(e art.TrainError) { l.end(training(e.Model, e.Step)) },
		Log:        func(art.LogEvent) { l.lookSoon() },
	}
}

// gathered tells how a gather goes.
func gathered(p art.GatherProgress) string {
	parts := []string{"rollouts"}
	if p.Done > p.Failed {
		parts = append(parts, fmt.Sprintf("reward %.3g", p.Reward))
	}
	if p.Failed > 0 {
		parts = append(parts, fmt.Sprintf("%d failed", p.Failed))
	}
	return strings.Join(parts, ", ")
}
