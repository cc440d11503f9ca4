package art

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// gathering is the state of one gather.
type gathering struct {
	opts    GatherOptions
	rollout func(ctx context.Context, scenario int) (*Trajectory, error)
	first   int    // number of the first scenario: 0, but in a pipeline
	share   *share // of slots for rollouts of several gathers; nil when it is the only one
	each    int    // rollouts of a scenario
	seed    uint64
	id      uint64       // of its events
	next    atomic.Int64 // index of the next rollout to start

	mu       sync.Mutex
	cells    []cell               // of each rollout: scenario x each + attempt
	open     []int                // of each scenario: rollouts that have not ended
	kept     []int                // of each scenario: its trajectories
	cut      []context.CancelFunc // of each scenario: ends its rollouts
	contexts []context.Context    // of each scenario
	results  [][]*TrajectoryGroup // of each scenario
	complete []bool               // of each scenario: results is final
	failed   int                  // number of failures
	rewards  mean                 // of trajectories
	tokens   int                  // sampled in trajectories
	done     int                  // number of rollouts that have ended
	broken   error                // the panic of an event function, which ends the gather
	stop     context.CancelFunc   // ends the rollouts

	// notifying has capacity 1 and is full while an event function runs. It is not a mutex because testing/synctest treats
	// only a channel as durably blocking.
	notifying chan struct{}
}

// numGathers counts the gathers of this process.
var numGathers atomic.Uint64

// cell is how one rollout ended: with a trajectory or with a failure and its error.
type cell struct {
	trajectory *Trajectory
	failure    *Failure
	err        error
}

func newGathering(o GatherOptions, scenarios int, rollout func(context.Context, int) (*Trajectory, error)) *gathering {
	each := o.GroupSize + o.Extra
	g := &gathering{
		opts: o, rollout: rollout, each: each,
		cells:     make([]cell, scenarios*each),
		open:      make([]int, scenarios),
		kept:      make([]int, scenarios),
		cut:       make([]context.CancelFunc, scenarios),
		contexts:  make([]context.Context, scenarios),
		results:   make([][]*TrajectoryGroup, scenarios),
		complete:  make([]bool, scenarios),
		notifying: make(chan struct{}, 1),
	}
	for i := range g.open {
		g.open[i] = each
	}
	return g
}

// run runs everything and returns what is complete.
func (g *gathering) run(ctx context.Context) ([]*TrajectoryGroup, error) {
	g.seed, g.id = gatherSeed(ctx, g.opts.Seed), numGathers.Add(1)
	inner, stop := context.WithCancel(ctx)
	defer stop()
	g.stop = stop
	for i := range g.contexts {
		g.contexts[i], g.cut[i] = context.WithCancel(inner)
	}
	start := time.Now()
	notify(g, g.opts.Events.GatherStart, func() GatherStart {
		return GatherStart{start, len(g.open), g.each, g.opts.Seed, g.id}
	})
	var workers sync.WaitGroup
	for range min(g.opts.Concurrency, len(g.cells)) {
		workers.Go(func() { g.work(inner) })
	}
	workers.Wait()
	groups, err := g.outcome(ctx)
	notify(g, g.opts.Events.GatherEnd, func() GatherEnd { return GatherEnd{g.id, time.Since(start), g.progress(), err} })
	if err == nil && g.broken != nil { // by the last event
		return g.outcome(ctx)
	}
	return groups, err
}

// work runs rollouts, in order, until none is left.
func (g *gathering) work(ctx context.Context) {
	for ctx.Err() == nil {
		i := int(g.next.Add(1)) - 1
		if i >= len(g.cells) {
			return
		}
		if !g.share.acquire(g.contexts[i/g.each]) {
			continue // cut, or cancelled
		}
		g.roll(ctx, i)
		g.share.release()
	}
}

// roll runs a rollout, and finishes the group that it completes.
func (g *gathering) roll(ctx context.Context, i int) {
	scenario := i / g.each
	began := RolloutStart{time.Now(), g.first + scenario, i % g.each, g.id}
	notify(g, g.opts.Events.RolloutStart, func() RolloutStart { return began })
	c, ok := g.attempt(g.contexts[scenario], &began)
	if !ok {
		return // cut or cancelled: the rollout has no result
	}
	group, late := g.put(i, c)
	if late {
		return
	}
	notify(g, g.opts.Events.RolloutEnd, func() RolloutEnd {
		return RolloutEnd{began, time.Since(began.Time), c.trajectory, c.failure, g.progress()}
	})
	if group != nil {
		g.finish(ctx, scenario, group)
	}
}

// put stores how a rollout ended. It returns the group when that was the last one of it. A rollout that ends when its
// group is complete is late, and is not stored.
func (g *gathering) put(i int, c cell) (group *TrajectoryGroup, late bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	scenario := i / g.each
	if g.kept[scenario] == g.opts.GroupSize {
		return nil, true
	}
	g.cells[i] = c
	g.done++
	if c.failure != nil {
		g.fail()
	} else {
		g.kept[scenario]++
		g.rewards.add(c.trajectory.Reward)
		for _, s := range c.trajectory.Samples() {
			g.tokens += len(s.IDs)
		}
	}
	if g.open[scenario]--; g.open[scenario] > 0 && g.kept[scenario] < g.opts.GroupSize {
		return nil, false
	}
	g.cut[scenario]()
	g.done += g.open[scenario] // those that are cut
	return g.group(scenario), false
}

// group collects the rollouts of a scenario.
func (g *gathering) group(scenario int) *TrajectoryGroup {
	group := newGroup()
	for _, c := range g.cellsOf(scenario) {
		switch {
		case c.failure != nil:
			group.Failures = append(group.Failures, *c.failure)
		case c.trajectory != nil:
			group.Trajectories = append(group.Trajectories, c.trajectory)
		}
	}
	if g.opts.Extra > 0 {
		group.Metrics["rollouts_cut"] = float64(g.open[scenario])
	}
	return group
}

// cellsOf returns the cells of a scenario.
func (g *gathering) cellsOf(scenario int) []cell {
	return g.cells[scenario*g.each : (scenario+1)*g.each]
}

// finish hands a complete group to After, if there is one, and stores what is to be returned for it.
func (g *gathering) finish(ctx context.Context, scenario int, group *TrajectoryGroup) {
	groups := []*TrajectoryGroup{group}
	if g.opts.After != nil {
		o := guard(ctx, func() ([]*TrajectoryGroup, error) { return g.opts.After(ctx, group) })
		if o.err != nil && ctx.Err() != nil {
			return // cancelled: the group is not complete
		}
		if o.err != nil {
			o.value = []*TrajectoryGroup{g.failGroup(scenario, o.err)}
		}
		groups = o.value
	}
	groups = slices.DeleteFunc(groups, func(g *TrajectoryGroup) bool { return g == nil })
	g.mu.Lock()
	g.results[scenario] = groups
	g.complete[scenario] = true
	g.mu.Unlock()
	notify(g, g.opts.Events.GroupEnd, func() GroupEnd { return GroupEnd{g.id, g.first + scenario, groups} })
}

// failGroup turns the trajectories of a group that After could not handle into failures.
func (g *gathering) failGroup(scenario int, err error) *TrajectoryGroup {
	g.mu.Lock()
	defer g.mu.Unlock()
	err = fmt.Errorf("after hook: %w", err)
	for i, c := range g.cellsOf(scenario) {
		if c.trajectory != nil {
			g.cellsOf(scenario)[i] = failedCell(g.first+scenario, i, 1, err)
			g.fail()
		}
	}
	return g.group(scenario)
}

// fail counts a failure and ends the gather when there are too many. g.mu is held.
func (g *gathering) fail() {
	g.failed++
	if g.failed > g.allowed() {
		g.stop()
	}
}

// allowed returns how many rollouts may fail.
func (g *gathering) allowed() int {
	// Without the small addition, 0.29 of 100 would be 28.
	fraction := math.Floor(g.opts.MaxFailureFraction*float64(len(g.cells)) + 1e-9)
	return max(g.opts.MaxFailures, int(fraction))
}

// notify calls an event function, if there is one. The event is made after the wait for earlier calls, so that the
// progress that events report never goes back. A panic ends the gather.
func notify[T any](g *gathering, f func(T), event func() T) {
	if f == nil {
		return
	}
	g.notifying <- struct{}{}
	defer func() { <-g.notifying }()
	if g.isBroken() {
		return
	}
	e := event()
	o := guard(context.Background(), func() (struct{}, error) { f(e); return struct{}{}, nil })
	if o.err != nil {
		g.mu.Lock()
		g.broken = o.err
		g.mu.Unlock()
		g.stop()
	}
}

// isBroken reports whether an event function has panicked.
func (g *gathering) isBroken() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.broken != nil
}

// progress returns how far the gather is.
func (g *gathering) progress() GatherProgress {
	g.mu.Lock()
	defer g.mu.Unlock()
	return GatherProgress{Done: g.done, Total: len(g.cells), Failed: g.failed, Reward: g.rewards.value(), Tokens: g.tokens}
}

// outcome returns the groups that are complete, in order, and why there are not more of them.
func (g *gathering) outcome(ctx context.Context) ([]*TrajectoryGroup, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	groups, all := []*TrajectoryGroup{}, true
	for i, result := range g.results {
		groups = append(groups, result...)
		all = all && g.complete[i]
	}
	switch {
	case g.broken != nil:
		return groups, &Error{"gather", fmt.Errorf("event function: %w", g.broken), "fix GatherOptions.Events"}
	case g.failed > g.allowed():
		return groups, &Error{"gather", g.tooMany(), "fix the rollout, or allow failures with GatherOptions.MaxFailures"}
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

// tooMany quotes the first failures, in the order of rollouts, and wraps their errors.
func (g *gathering) tooMany() error {
	const quoted = 3
	format, args := "%w: %d of %d, at most %d allowed", []any{ErrTooManyFailures, g.failed, len(g.cells), g.allowed()}
	n := 0
	for _, c := range g.cells {
		if c.failure == nil {
			continue
		}
		if n++; n > quoted {
			break
		}
		format += "; scenario %d, attempt %d: %w"
		args = append(args, c.failure.Scenario, c.failure.Attempt, c.err)
	}
	return fmt.Errorf(format, args...)
}
