package art

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// groupProducer is where a pipeline takes groups from.
type groupProducer interface {
	// start starts a job, which it sends to ended when ctx or the job ends. It returns nil when none can start now.
	start(ctx context.Context, ended chan<- *groupJob) *groupJob
	// changed has an element when another job can start, though none has ended.
	changed() <-chan struct{}
	// exhausted reports that no job will start any more, unless one that runs is repeated.
	exhausted() bool
	// finish is told that a job was trained on or dropped, or is to be repeated.
	finish(j *groupJob, repeat bool)
	// save stores that the step after the current one is trained on these jobs, before it is.
	save(ctx context.Context, step int, batch []*groupJob) error
	// busy is the time for which rollouts ran since the last call, all together; ok is false when it is not known.
	busy() (sum time.Duration, ok bool)
}

// groupJob produces what a pipeline trains on or drops at once: the groups of one scenario, or one group of a source.
type groupJob struct {
	number    int           // counts the jobs of all scenarios from the beginning of the run
	firstStep atomic.Int64  // at which its first rollout began, notStarted before
	queue     *rolloutQueue // nil of a source
	groups    []*TrajectoryGroup
	failures  []rolloutResult
	rollouts  int   // that ended
	err       error // ends the pipeline, unless it is errStale
	cancel    context.CancelCauseFunc
}

// notStarted is the first step of a job without a rollout.
const notStarted = math.MinInt64

func newGroupJob(number int, cancel context.CancelCauseFunc) *groupJob {
	j := &groupJob{number: number, cancel: cancel}
	j.firstStep.Store(notStarted)
	return j
}

// age is the number of steps from the one at which the first rollout began.
func (j *groupJob) age(step int) int {
	if first := j.firstStep.Load(); first != notStarted {
		return step - int(first)
	}
	return 0
}

// scenarioProducer runs scenarios in a shuffled order, epoch after epoch.
type scenarioProducer struct {
	opts    *PipelineOptions
	model   *Model
	count   int // of scenarios
	rollout func(ctx context.Context, scenario int) (*Trajectory, error)
	limit   *rolloutLimit

	at     dataPosition
	newest *groupJob // that has started
	next   int       // number of the next job
	repeat []int     // jobs to run again before
	epoch  int       // that order is of
	order  []int
}

// dataPosition says which jobs are done.
type dataPosition struct {
	Next int   `json:"next"` // all before it
	Done []int `json:"done"` // and these
}

func (p *dataPosition) markDone(number int) {
	at, there := slices.BinarySearch(p.Done, number)
	if there || number < p.Next {
		return
	}
	p.Done = slices.Insert(p.Done, at, number)
	for len(p.Done) > 0 && p.Done[0] == p.Next {
		p.Next, p.Done = p.Next+1, p.Done[1:]
	}
}

// dataState is what a run stores of a pipeline.
type dataState struct {
	Scenarios int    `json:"scenarios"`
	Seed      string `json:"seed"`
	// Steps has the position at a step, by its number; null deletes one.
	Steps map[string]*dataPosition `json:"steps"`
}

// restore continues at the stored position, if there is one: that of the newest step up to the model's.
func (s *scenarioProducer) restore(ctx context.Context) error {
	var stored struct {
		Pipeline map[string]*dataState `json:"pipeline"`
	}
	if _, err := s.model.LoadState(ctx, &stored); err != nil {
		if errors.Is(err, ErrUnsupported) {
			return nil
		}
		return err
	}
	state := stored.Pipeline[s.opts.Name]
	if state == nil {
		return nil
	}
	if state.Scenarios != s.count || state.Seed != s.seed() {
		err := fmt.Errorf("%w: the run has begun with %d scenarios and seed %s, and is continued with %d and %s", ErrInvalid,
			state.Scenarios, state.Seed, s.count, s.seed())
		return &Error{"pipeline", err, "continue with the same ones, or begin these anew with another PipelineOptions.Name"}
	}
	newest := -1
	for key, at := range state.Steps {
		if step, err := strconv.Atoi(key); err == nil && at != nil && step > newest && step <= s.model.Step() {
			newest, s.at = step, *at
		}
	}
	s.next = s.at.Next
	return nil
}

func (s *scenarioProducer) seed() string { return strconv.FormatUint(s.opts.Gather.Seed, 10) }

// save stores the position before and after the step that is about to be made. So the position is right whether or not
// a process that is killed has committed the step.
func (s *scenarioProducer) save(ctx context.Context, step int, batch []*groupJob) error {
	after := dataPosition{s.at.Next, slices.Clone(s.at.Done)}
	for _, j := range batch {
		after.markDone(j.number)
	}
	state := dataState{s.count, s.seed(), map[string]*dataPosition{
		strconv.Itoa(step - 1): nil, strconv.Itoa(step): &s.at, strconv.Itoa(step + 1): &after,
	}}
	err := s.model.SaveState(ctx, map[string]any{"pipeline": map[string]any{s.opts.Name: state}})
	if errors.Is(err, ErrUnsupported) {
		return nil
	}
	return err
}

// finish implements groupProducer: it marks a job as done, or puts it back.
func (s *scenarioProducer) finish(j *groupJob, repeat bool) {
	if repeat {
		s.repeat = append(s.repeat, j.number)
		return
	}
	s.at.markDone(j.number)
}

func (s *scenarioProducer) changed() <-chan struct{} { return s.limit.freed }

func (s *scenarioProducer) busy() (time.Duration, bool) { return s.limit.takeBusy(), true }

// exhausted implements groupProducer. It moves next to a job that is not done.
func (s *scenarioProducer) exhausted() bool {
	for slices.Contains(s.at.Done, s.next) {
		s.next++
	}
	return len(s.repeat) == 0 && s.opts.Epochs >= 0 && s.next >= s.opts.Epochs*s.count
}

// start implements groupProducer. A job starts when all rollouts of those before have a slot: so the first ones end
// first.
func (s *scenarioProducer) start(ctx context.Context, ended chan<- *groupJob) *groupJob {
	if ctx.Err() != nil || s.exhausted() || !s.limit.free() || s.newest != nil && s.newest.queue.length.Load() > 0 {
		return nil
	}
	number := s.next
	if len(s.repeat) > 0 {
		number, s.repeat = s.repeat[0], s.repeat[1:]
	} else {
		s.next++
	}
	ctx, cancel := context.WithCancelCause(ctx)
	j := newGroupJob(number, cancel)
	j.queue = &rolloutQueue{limit: s.limit}
	j.queue.length.Store(int64(s.opts.Gather.GroupSize + s.opts.Gather.Extra))
	s.newest = j
	scenario := s.scenario(number)
	go func() {
		defer cancel(nil)
		s.gather(ctx, j, scenario)
		j.queue.length.Store(0) // of rollouts that were cut before they began
		ended <- j
	}()
	return j
}

func (s *scenarioProducer) scenario(number int) int {
	if epoch := number / s.count; s.order == nil || epoch != s.epoch {
		order := BatchOptions{Seed: s.opts.Gather.Seed, InOrder: s.opts.InOrder}
		s.epoch, s.order = epoch, order.order(epoch, s.count)
	}
	return s.order[number%s.count]
}

func (s *scenarioProducer) gather(ctx context.Context, j *groupJob, scenario int) {
	o := *s.opts.Gather
	o.Seed = mix(seedJob, o.Seed, uint64(j.number))
	o.Concurrency = o.GroupSize + o.Extra
	o.MaxFailures = o.Concurrency // they are counted over all groups
	g := newGathering(o, scenario, 1, func(ctx context.Context, scenario int) (*Trajectory, error) {
		j.firstStep.CompareAndSwap(notStarted, int64(s.model.Step()))
		return s.rollout(ctx, scenario)
	})
	g.queue = j.queue
	j.groups, j.err = g.run(ctx)
	for _, r := range g.scenarios[0].results {
		if r.failure != nil {
			j.failures = append(j.failures, r)
		}
		if r.failure != nil || r.trajectory != nil {
			j.rollouts++
		}
	}
	for _, group := range j.groups {
		if _, own := group.Metadata["scenario"]; !own && group.Metadata != nil {
			group.Metadata["scenario"] = scenario
		}
	}
}

// sourceProducer takes groups from a source, one after the other.
type sourceProducer struct {
	source  GroupSource
	model   *Model
	waiting atomic.Bool // for the next group
	eof     atomic.Bool
}

// start implements groupProducer.
func (s *sourceProducer) start(ctx context.Context, ended chan<- *groupJob) *groupJob {
	if ctx.Err() != nil || s.waiting.Load() || s.eof.Load() {
		return nil
	}
	s.waiting.Store(true)
	j := newGroupJob(0, func(error) {}) // what has not come cannot be cancelled
	go func() {
		o := guard(ctx, func() (*TrajectoryGroup, error) { return s.source.Next(ctx) })
		switch {
		case errors.Is(o.err, io.EOF):
			s.eof.Store(true)
		case o.err != nil:
			j.err = o.err
		case o.value != nil:
			j.groups = []*TrajectoryGroup{o.value}
			j.firstStep.Store(int64(oldestStep(o.value, s.model.Step())))
		}
		s.waiting.Store(false)
		ended <- j
	}()
	return j
}

// oldestStep returns the lowest step among the samples of a group, and current when there are none.
func oldestStep(g *TrajectoryGroup, current int) int {
	oldest := current
	for _, t := range present(g.Trajectories) {
		if first, _, ok := t.PolicySteps(); ok {
			oldest = min(oldest, first)
		}
	}
	return oldest
}

func (s *sourceProducer) exhausted() bool { return s.eof.Load() }

// A source has no position to store, and nothing is known of its rollouts.
func (s *sourceProducer) finish(*groupJob, bool)                       {}
func (s *sourceProducer) save(context.Context, int, []*groupJob) error { return nil }
func (s *sourceProducer) changed() <-chan struct{}                     { return nil }
func (s *sourceProducer) busy() (time.Duration, bool)                  { return 0, false }

// rolloutLimit bounds the rollouts that run at once in several gathers: a semaphore that measures how many do.
type rolloutLimit struct {
	slots chan struct{} // full when no slot is free
	freed chan struct{} // has an element when a slot has become free, or a queue has become empty

	mu      sync.Mutex
	running int
	changed time.Time
	busy    time.Duration // sum over the rollouts of how long they ran, since it was last taken
}

func newRolloutLimit(n int) *rolloutLimit {
	return &rolloutLimit{slots: make(chan struct{}, n), freed: make(chan struct{}, 1), changed: time.Now()}
}

func (l *rolloutLimit) free() bool { return len(l.slots) < cap(l.slots) }

func (l *rolloutLimit) count(n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.measure()
	l.running += n
}

// measure brings busy up to now. l.mu is held.
func (l *rolloutLimit) measure() {
	now := time.Now()
	l.busy += time.Duration(l.running) * now.Sub(l.changed)
	l.changed = now
}

// takeBusy returns how long rollouts ran since the last call, all together.
func (l *rolloutLimit) takeBusy() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.measure()
	busy := l.busy
	l.busy = 0
	return busy
}

// notifyFreed says that something has changed for those who want to start rollouts.
func (l *rolloutLimit) notifyFreed() {
	select {
	case l.freed <- struct{}{}:
	default: // it is said already
	}
}

// rolloutQueue has the rollouts of one gather that wait for slots of a limit. A nil *rolloutQueue has no limit.
type rolloutQueue struct {
	limit  *rolloutLimit
	length atomic.Int64 // rollouts that wait
}

// acquire waits for a slot. It returns false when ctx ends first.
func (q *rolloutQueue) acquire(ctx context.Context) bool {
	if ctx.Err() != nil {
		return false
	}
	if q == nil {
		return true
	}
	select {
	case q.limit.slots <- struct{}{}:
		q.limit.count(1)
		if q.length.Add(-1) == 0 {
			q.limit.notifyFreed()
		}
		return true
	case <-ctx.Done():
		return false
	}
}

func (q *rolloutQueue) release() {
	if q != nil {
		q.limit.count(-1)
		<-q.limit.slots
		q.limit.notifyFreed()
	}
}
