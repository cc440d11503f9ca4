package art

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// JudgeSeconds is the metric of a group that says how long [GatherOptions].After took.
const JudgeSeconds = "judge_s"

// GatherOptions say how rollouts are run. The zero value and a nil *GatherOptions are the defaults.
type GatherOptions struct {
	// GroupSize is the number of trajectories that [GatherGroups] wants of each scenario. Default 4. [Gather] runs one and
	// refuses this option.
	GroupSize int
	// Extra is the number of rollouts of each scenario beyond GroupSize. A group is complete with its first GroupSize
	// trajectories, and the rollouts that are left are cut: their context ends, and what they return is dropped. So a slow
	// or failed rollout holds nothing up. What is kept then depends on timing, and favours short rollouts. Groups have the
	// metric "rollouts_cut". Default 0.
	Extra int
	// Concurrency bounds the rollouts and After hooks that run at once. Default 16. Rollouts that were abandoned after a
	// timeout are not counted.
	Concurrency int
	// Timeout bounds each try of a rollout, by its context. A try that has not returned by then has failed. It has
	// another second to return, then its goroutine is abandoned and its result dropped. Default 0: none.
	Timeout time.Duration
	// Retries is how often a rollout that failed is tried again, with other seeds. Default 0. Errors that a retry cannot
	// fix are not retried: [ErrNotRegistered], [ErrClosed], [ErrFrozen], [ErrUnsupported].
	Retries int
	// Backoff is the pause before the first retry. It doubles with each, up to 30 s, and is shortened by up to half, by an
	// amount that depends on the seed. Default 250 ms.
	Backoff time.Duration
	// MaxFailures and MaxFailureFraction say how many rollouts may fail: the count, or the fraction of all rollouts
	// rounded down, whichever is more. Default 0 and 0: none.
	MaxFailures        int
	MaxFailureFraction float64
	// After is called with each group as soon as it is complete, while other rollouts run: to judge, filter or split it.
	// What it returns replaces the group; an empty list drops it. When it fails, or panics, all trajectories of the group
	// become failures. The first group has its duration as the metric [JudgeSeconds]. [Gather] refuses it. May be nil.
	After func(ctx context.Context, g *TrajectoryGroup) ([]*TrajectoryGroup, error)
	// Events are called for rollouts and groups. May be nil.
	Events *Events
	// Seed of the gather. The seed of each completion derives from the run's seed, the step, this seed, and the group,
	// attempt, retry and number of the call in its rollout, so that a run does not depend on timing; concurrent calls of
	// one rollout are numbered in the order in which they arrive. [Rand] and [GroupRand] depend on this seed and not on
	// the model: a training loop whose environment uses them sets it to the step. Default 0.
	Seed uint64
}

// GatherGroups runs rollout GroupSize times for each scenario and returns one group per scenario, in the order of
// scenarios; within a group, trajectories are in the order of attempts. The result does not depend on the order in
// which rollouts end, unless [GatherOptions].Extra is set. opts may be nil.
//
// A rollout that returns an error, panics, times out or returns no trajectory becomes a [Failure] of its group. When
// more fail than the options allow, the others are cancelled, and the groups that are complete are returned together
// with an [ErrTooManyFailures] that quotes and wraps the first three reasons. When ctx ends, the groups that are
// complete are returned with an error that wraps ctx's. Trajectories without a Duration are finished.
func GatherGroups[S any](
	ctx context.Context, scenarios []S, rollout func(context.Context, S) (*Trajectory, error), opts *GatherOptions,
) ([]*TrajectoryGroup, error) {
	o := opts.withDefaults()
	var p problems
	p.check(rollout != nil, "rollout is nil")
	o.check(&p)
	if err := p.err("gather", configHint); err != nil {
		return nil, err
	}
	g := newGathering(o, 0, len(scenarios), func(ctx context.Context, i int) (*Trajectory, error) {
		return rollout(ctx, scenarios[i])
	})
	return g.run(ctx)
}

// Gather runs rollout once for each scenario and returns all trajectories as one group, in the order of scenarios: for
// evaluation. Its rollouts have the seeds of the first attempts of [GatherGroups]. Errors are those of [GatherGroups];
// the group, of what is complete, is nil only when the options are invalid.
func Gather[S any](
	ctx context.Context, scenarios []S, rollout func(context.Context, S) (*Trajectory, error), opts *GatherOptions,
) (*TrajectoryGroup, error) {
	o := deref(opts)
	var p problems
	p.check(o.GroupSize == 0, "GroupSize is set")
	p.check(o.Extra == 0, "Extra is set")
	p.check(o.After == nil, "After is set")
	if err := p.err("gather", "use GatherGroups: Gather makes one flat group"); err != nil {
		return nil, err
	}
	o.GroupSize = 1
	groups, err := GatherGroups(ctx, scenarios, rollout, &o)
	if errors.Is(err, ErrInvalid) && groups == nil {
		return nil, err
	}
	flat := newGroup()
	for _, g := range groups {
		flat.Trajectories = append(flat.Trajectories, g.Trajectories...)
		flat.Failures = append(flat.Failures, g.Failures...)
	}
	return flat, err
}

func (o *GatherOptions) withDefaults() GatherOptions {
	d := deref(o)
	d.GroupSize, d.Concurrency = cmp.Or(d.GroupSize, 4), cmp.Or(d.Concurrency, 16)
	d.Events, d.Backoff = cmp.Or(d.Events, &Events{}), cmp.Or(d.Backoff, 250*time.Millisecond)
	return d
}

func (o *GatherOptions) check(p *problems) {
	p.check(o.GroupSize > 0, "GroupSize is %d, want > 0", o.GroupSize)
	p.check(o.Extra >= 0, "Extra is %d, want >= 0", o.Extra)
	p.check(o.Concurrency > 0, "Concurrency is %d, want > 0", o.Concurrency)
	p.check(o.Timeout >= 0, "Timeout is %v, want >= 0", o.Timeout)
	p.check(o.Retries >= 0, "Retries is %d, want >= 0", o.Retries)
	p.check(o.Backoff > 0, "Backoff is %v, want > 0", o.Backoff)
	p.check(o.MaxFailures >= 0, "MaxFailures is %d, want >= 0", o.MaxFailures)
	fraction := o.MaxFailureFraction
	p.check(fraction >= 0 && fraction <= 1, "MaxFailureFraction is %v, want 0 to 1", fraction)
}

type gathering struct {
	opts     GatherOptions
	rollout  func(ctx context.Context, scenario int) (*Trajectory, error)
	queue    *rolloutQueue // for a limit that several gathers share; nil when this is the only one
	attempts int           // of each scenario
	seed     uint64
	id       uint64             // of its events
	next     atomic.Int64       // rollout to start: index of the scenario x attempts + attempt
	stop     context.CancelFunc // ends the rollouts

	mu        sync.Mutex
	scenarios []scenarioState
	progress  GatherProgress
	rewards   mean  // of trajectories
	eventErr  error // the panic of an event function, which ends the gather

	// notifying has capacity 1 and is full while an event function runs. It is not a mutex because testing/synctest treats
	// only a channel as durably blocking.
	notifying chan struct{}
}

// scenarioState is the state of one scenario: its rollouts, and the groups that they become.
type scenarioState struct {
	number   int // in events and failures
	ctx      context.Context
	cancel   context.CancelFunc // ends the rollouts
	results  []rolloutResult    // by attempt
	left     int                // rollouts that have not ended
	kept     int                // trajectories
	complete bool               // groups is final
	groups   []*TrajectoryGroup // to return
}

// rolloutResult is how one rollout ended: with a trajectory or with a failure and its error. Neither is set before.
type rolloutResult struct {
	trajectory *Trajectory
	failure    *Failure
	err        error
	afterHook  bool // it failed because of After
}

var numGathers atomic.Uint64

// newGathering returns the gather of so many scenarios, which are numbered from first.
func newGathering(
	o GatherOptions, first, scenarios int, rollout func(context.Context, int) (*Trajectory, error),
) *gathering {
	attempts := o.GroupSize + o.Extra
	g := &gathering{
		opts: o, rollout: rollout, attempts: attempts, scenarios: make([]scenarioState, scenarios),
		progress: GatherProgress{Total: scenarios * attempts}, notifying: make(chan struct{}, 1),
	}
	for i := range g.scenarios {
		g.scenarios[i] = scenarioState{number: first + i, results: make([]rolloutResult, attempts), left: attempts}
	}
	return g
}

// run runs everything and returns what is complete.
func (g *gathering) run(ctx context.Context) ([]*TrajectoryGroup, error) {
	g.seed, g.id = gatherSeed(ctx, g.opts.Seed), numGathers.Add(1)
	inner, stop := context.WithCancel(ctx)
	defer stop()
	g.stop = stop
	for i := range g.scenarios {
		g.scenarios[i].ctx, g.scenarios[i].cancel = context.WithCancel(inner)
	}
	start := time.Now()
	notify(g, g.opts.Events.GatherStart, func() GatherStart {
		return GatherStart{start, len(g.scenarios), g.attempts, g.opts.Seed, g.id}
	})
	var workers sync.WaitGroup
	for range min(g.opts.Concurrency, len(g.scenarios)*g.attempts) {
		workers.Go(func() {
			for inner.Err() == nil { // in order, until none is left
				i := int(g.next.Add(1)) - 1
				if i >= len(g.scenarios)*g.attempts {
					return
				}
				s := &g.scenarios[i/g.attempts]
				if !g.queue.acquire(s.ctx) {
					continue // cut, or cancelled
				}
				g.runRollout(inner, s, i%g.attempts)
				g.queue.release()
			}
		})
	}
	workers.Wait()
	groups, err := g.outcome(ctx)
	notify(g, g.opts.Events.GatherEnd, func() GatherEnd {
		return GatherEnd{g.id, time.Since(start), g.currentProgress(), err}
	})
	if err == nil && g.eventErr != nil { // of the last event
		return g.outcome(ctx)
	}
	return groups, err
}

// runRollout runs a rollout, and finishes the group that it completes.
func (g *gathering) runRollout(ctx context.Context, s *scenarioState, attempt int) {
	start := RolloutStart{time.Now(), s.number, attempt, g.id}
	notify(g, g.opts.Events.RolloutStart, func() RolloutStart { return start })
	r, ok := g.attempt(s.ctx, &start)
	if !ok {
		return // cut or cancelled: the rollout has no result
	}
	group, late := g.store(s, attempt, r)
	if late {
		return
	}
	notify(g, g.opts.Events.RolloutEnd, func() RolloutEnd {
		return RolloutEnd{start, time.Since(start.Time), r.trajectory, r.failure, g.currentProgress()}
	})
	if group != nil {
		g.finish(ctx, s, group)
	}
}

// store stores how a rollout ended. It returns the group when that was the last one of it. A rollout that ends when its
// group is complete is late, and is not stored.
func (g *gathering) store(s *scenarioState, attempt int, r rolloutResult) (group *TrajectoryGroup, late bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if s.kept == g.opts.GroupSize {
		return nil, true
	}
	s.results[attempt] = r
	s.left--
	g.progress.Done++
	if r.failure != nil {
		g.countFailure()
	} else {
		s.kept++
		g.rewards.add(r.trajectory.Reward)
		g.progress.Tokens += sampledTokens(r.trajectory)
	}
	if s.left > 0 && s.kept < g.opts.GroupSize {
		return nil, false
	}
	s.cancel()
	g.progress.Done += s.left // those that are cut
	return s.group(g.opts.Extra > 0), false
}

// countFailure counts a failure and ends the gather when there are too many. g.mu is held.
func (g *gathering) countFailure() {
	g.progress.Failed++
	if g.progress.Failed > g.opts.allowedFailures(g.progress.Total) {
		g.stop()
	}
}

// group collects the rollouts of a scenario, with the number of those that were cut if some can be.
func (s *scenarioState) group(cuts bool) *TrajectoryGroup {
	group := newGroup()
	for _, r := range s.results {
		switch {
		case r.failure != nil:
			group.Failures = append(group.Failures, *r.failure)
		case r.trajectory != nil:
			group.Trajectories = append(group.Trajectories, r.trajectory)
		}
	}
	if cuts {
		group.Metrics["rollouts_cut"] = float64(s.left)
	}
	return group
}

// finish hands a complete group to After, if there is one, and stores what is to be returned for it.
func (g *gathering) finish(ctx context.Context, s *scenarioState, group *TrajectoryGroup) {
	groups := []*TrajectoryGroup{group}
	if g.opts.After != nil {
		start := time.Now()
		o := guard(ctx, func() ([]*TrajectoryGroup, error) { return g.opts.After(ctx, group) })
		took := time.Since(start)
		if o.err != nil && ctx.Err() != nil {
			return // cancelled: the group is not complete
		}
		if o.err != nil {
			o.value = []*TrajectoryGroup{g.failGroup(s, o.err)}
		}
		groups = present(o.value)
		if len(groups) > 0 {
			if groups[0].Metrics == nil {
				groups[0].Metrics = map[string]float64{}
			}
			groups[0].Metrics[JudgeSeconds] = took.Seconds()
		}
	}
	g.mu.Lock()
	s.groups, s.complete = groups, true
	g.mu.Unlock()
	notify(g, g.opts.Events.GroupEnd, func() GroupEnd { return GroupEnd{g.id, s.number, groups} })
}

// failGroup turns the trajectories of a group that After could not handle into failures.
func (g *gathering) failGroup(s *scenarioState, err error) *TrajectoryGroup {
	g.mu.Lock()
	defer g.mu.Unlock()
	err = fmt.Errorf("after hook: %w", err)
	for attempt, r := range s.results {
		if r.trajectory != nil {
			s.results[attempt] = failedRollout(s.number, attempt, 1, err)
			s.results[attempt].afterHook = true
			g.countFailure()
		}
	}
	return s.group(g.opts.Extra > 0)
}

// notify calls an event function, if there is one. The event is made after the wait for earlier calls, so that the
// progress that events report never goes back. A panic ends the gather.
func notify[T any](g *gathering, f func(T), event func() T) {
	if f == nil {
		return
	}
	g.notifying <- struct{}{}
	defer func() { <-g.notifying }()
	g.mu.Lock()
	panicked := g.eventErr != nil
	g.mu.Unlock()
	if panicked {
		return
	}
	e := event()
	o := guard(context.Background(), func() (struct{}, error) { f(e); return struct{}{}, nil })
	if o.err != nil {
		g.mu.Lock()
		g.eventErr = o.err
		g.mu.Unlock()
		g.stop()
	}
}

func (g *gathering) currentProgress() GatherProgress {
	g.mu.Lock()
	defer g.mu.Unlock()
	p := g.progress
	p.Reward = g.rewards.value()
	return p
}

// outcome returns the groups that are complete, in order, and why there are not more of them.
func (g *gathering) outcome(ctx context.Context) ([]*TrajectoryGroup, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	groups, all, failed := []*TrajectoryGroup{}, true, failures{}
	for _, s := range g.scenarios {
		groups = append(groups, s.groups...)
		all = all && s.complete
		for _, r := range s.results {
			failed.add(r)
		}
	}
	allowed := g.opts.allowedFailures(g.progress.Total)
	switch {
	case g.eventErr != nil:
		return groups, &Error{"gather", fmt.Errorf("event function: %w", g.eventErr), "fix GatherOptions.Events"}
	case failed.n > allowed:
		count := fmt.Sprintf("%d of %d, at most %d allowed", failed.n, g.progress.Total, allowed)
		return groups, failed.tooMany("gather", count, "GatherOptions.")
	case !all:
		return groups, &Error{"gather", endOf(ctx), "the context ended before the rollouts did; what is complete is returned"}
	}
	return groups, nil
}

// endOf returns the error of a context that has ended, with its cause when that says more.
func endOf(ctx context.Context) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if errors.Is(cause, err) {
		return cause
	}
	return fmt.Errorf("%w: %w", err, cause)
}
