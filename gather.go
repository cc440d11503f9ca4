package art

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"
)

// GatherOptions say how rollouts are run. The zero value and a nil *GatherOptions are the defaults.
type GatherOptions struct {
	// GroupSize is how often [GatherGroups] tries each scenario. Default 4. [Gather] tries each once and refuses it.
	GroupSize int
	// Concurrency bounds the rollouts and After hooks that run at once. Default 16. Rollouts that were left behind after a
	// timeout are not counted.
	Concurrency int
	// Timeout bounds each try of a rollout, by its context. A try that has not returned by then has failed. It is given
	// another second to return, then its goroutine is left behind and its result dropped. Default 0: none.
	Timeout time.Duration
	// Retries is how often a rollout that failed is tried again, with other seeds. Default 0. Errors that no retry cures
	// are not retried: [ErrNotRegistered], [ErrClosed], [ErrFrozen], [ErrUnsupported].
	Retries int
	// Backoff is the pause before the first retry. It doubles with each, up to 30 s, and is shortened by up to half, by an
	// amount that depends on the seed. Default 250 ms.
	Backoff time.Duration
	// MaxFailures and MaxFailureFraction say how many rollouts may fail: the count, or the fraction of all rollouts
	// rounded down, whichever is more. Default 0 and 0: none.
	MaxFailures        int
	MaxFailureFraction float64
	// After is called with each group as soon as it is complete, while other rollouts run: to judge, filter or split it.
	// What it returns takes the place of the group: nothing drops it. When it fails, or panics, all trajectories of the
	// group become failures. [Gather] refuses it. May be nil.
	After func(ctx context.Context, g *TrajectoryGroup) ([]*TrajectoryGroup, error)
	// Progress is called after each rollout, one call at a time. When it panics, the gather ends. May be nil.
	Progress func(GatherProgress)
	// Seed of the gather. The seed of each completion derives from the run's seed, the step, this seed, and the group,
	// attempt, retry and number of the call in its rollout, so that a run does not depend on timing; calls that one
	// rollout makes concurrently are numbered as they come. [Rand] and [GroupRand] depend on this seed and not on the
	// model: a training loop whose environment uses them sets it to the step. Default 0.
	Seed uint64
}

// GatherProgress tells how far a gather is.
type GatherProgress struct {
	Done, Total int // rollouts; those that failed are done
	Failed      int
	Reward      float64 // mean of the trajectories so far, 0 before the first
}

// GatherGroups runs rollout GroupSize times for each scenario and returns one group for each, in the order of scenarios;
// within a group, trajectories are in the order of attempts. The result does not depend on the order in which rollouts
// end. opts may be nil.
//
// A rollout that returns an error, panics, times out or returns no trajectory becomes a [Failure] of its group. When more
// fail than the options allow, the others are cancelled, and the groups that are complete are returned together with an
// [ErrTooManyFailures] that quotes and wraps the first failures. When ctx ends, the groups that are complete are returned
// with an error that wraps ctx's. Trajectories without a Duration are finished.
func GatherGroups[S any](ctx context.Context, scenarios []S, rollout func(context.Context, S) (*Trajectory, error), opts *GatherOptions) ([]*TrajectoryGroup, error) {
	o := opts.withDefaults()
	if err := o.validate(rollout != nil); err != nil {
		return nil, err
	}
	g := newGathering(o, len(scenarios), func(ctx context.Context, i int) (*Trajectory, error) {
		return rollout(ctx, scenarios[i])
	})
	return g.run(ctx)
}

// Gather runs rollout once for each scenario and returns all trajectories as one group, in the order of scenarios: for
// evaluation. Its rollouts have the seeds of the first attempts of [GatherGroups]. Errors are those of [GatherGroups]; the
// group, of what is complete, is nil only when the options are invalid.
func Gather[S any](ctx context.Context, scenarios []S, rollout func(context.Context, S) (*Trajectory, error), opts *GatherOptions) (*TrajectoryGroup, error) {
	o := GatherOptions{}
	if opts != nil {
		o = *opts
	}
	var p problems
	p.check(o.GroupSize == 0, "GroupSize is set")
	p.check(o.After == nil, "After is set")
	if err := p.err("gather", "use GatherGroups: Gather makes one flat group"); err != nil {
		return nil, err
	}
	o.GroupSize = 1
	groups, err := GatherGroups(ctx, scenarios, rollout, &o)
	if errors.Is(err, ErrInvalid) && groups == nil {
		return nil, err
	}
	flat := &TrajectoryGroup{}
	for _, g := range groups {
		flat.Trajectories = append(flat.Trajectories, g.Trajectories...)
		flat.Failures = append(flat.Failures, g.Failures...)
	}
	return flat, err
}

// withDefaults returns a copy with defaults filled in.
func (o *GatherOptions) withDefaults() GatherOptions {
	var d GatherOptions
	if o != nil {
		d = *o
	}
	if d.GroupSize == 0 {
		d.GroupSize = 4
	}
	if d.Concurrency == 0 {
		d.Concurrency = 16
	}
	if d.Backoff == 0 {
		d.Backoff = 250 * time.Millisecond
	}
	return d
}

// validate lists every problem.
func (o *GatherOptions) validate(hasRollout bool) error {
	var p problems
	p.check(hasRollout, "rollout is nil")
	p.check(o.GroupSize > 0, "GroupSize is %d, want > 0", o.GroupSize)
	p.check(o.Concurrency > 0, "Concurrency is %d, want > 0", o.Concurrency)
	p.check(o.Timeout >= 0, "Timeout is %v, want >= 0", o.Timeout)
	p.check(o.Retries >= 0, "Retries is %d, want >= 0", o.Retries)
	p.check(o.Backoff > 0, "Backoff is %v, want > 0", o.Backoff)
	p.check(o.MaxFailures >= 0, "MaxFailures is %d, want >= 0", o.MaxFailures)
	p.check(o.MaxFailureFraction >= 0 && o.MaxFailureFraction <= 1, "MaxFailureFraction is %v, want 0 to 1", o.MaxFailureFraction)
	return p.err("gather", configHint)
}

// gathering is the state of one gather.
type gathering struct {
	opts      GatherOptions
	scenarios int
	rollout   func(ctx context.Context, scenario int) (*Trajectory, error)
	seed      uint64
	next      atomic.Int64 // index of the next rollout to start

	mu        sync.Mutex
	cells     []cell               // of each rollout: scenario x GroupSize + attempt
	open      []int                // of each scenario: rollouts that have not ended
	results   [][]*TrajectoryGroup // of each scenario
	complete  []bool               // of each scenario: results is final
	failed    int                  // number of failures
	rewards   mean                 // of trajectories
	done      int                  // number of rollouts that have ended
	broken    error                // what a hook did that ends the gather
	stop      context.CancelFunc   // ends the rollouts
	reporting chan struct{}        // of size 1, full while Progress runs: unlike a mutex, testing/synctest can see through it
}

// cell is how one rollout ended: with a trajectory or with a failure and its error.
type cell struct {
	trajectory *Trajectory
	failure    *Failure
	err        error
}

func newGathering(o GatherOptions, scenarios int, rollout func(context.Context, int) (*Trajectory, error)) *gathering {
	g := &gathering{
		opts: o, scenarios: scenarios, rollout: rollout,
		cells:     make([]cell, scenarios*o.GroupSize),
		open:      make([]int, scenarios),
		results:   make([][]*TrajectoryGroup, scenarios),
		complete:  make([]bool, scenarios),
		reporting: make(chan struct{}, 1),
	}
	for i := range g.open {
		g.open[i] = o.GroupSize
	}
	return g
}

// run runs everything and returns what is complete.
func (g *gathering) run(ctx context.Context) ([]*TrajectoryGroup, error) {
	g.seed = gatherSeed(ctx, g.opts.Seed)
	inner, stop := context.WithCancel(ctx)
	defer stop()
	g.stop = stop
	var workers sync.WaitGroup
	for range min(g.opts.Concurrency, len(g.cells)) {
		workers.Go(func() { g.work(inner) })
	}
	workers.Wait()
	return g.outcome(ctx)
}

// work runs rollouts, in order, until none is left.
func (g *gathering) work(ctx context.Context) {
	for ctx.Err() == nil {
		i := int(g.next.Add(1)) - 1
		if i >= len(g.cells) {
			return
		}
		c, ok := g.attempt(ctx, i/g.opts.GroupSize, i%g.opts.GroupSize)
		if !ok {
			return // cancelled: the rollout has no result
		}
		if group := g.put(i, c); group != nil {
			g.finish(ctx, i/g.opts.GroupSize, group)
		}
		g.report()
	}
}

// put stores how a rollout ended. It returns the group when that was the last one of it.
func (g *gathering) put(i int, c cell) *TrajectoryGroup {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.cells[i] = c
	g.done++
	if c.failure != nil {
		g.fail(1)
	} else {
		g.rewards.add(c.trajectory.Reward)
	}
	scenario := i / g.opts.GroupSize
	if g.open[scenario]--; g.open[scenario] > 0 {
		return nil
	}
	return g.group(scenario)
}

// group collects the rollouts of a scenario.
func (g *gathering) group(scenario int) *TrajectoryGroup {
	group := &TrajectoryGroup{}
	for _, c := range g.cellsOf(scenario) {
		if c.failure != nil {
			group.Failures = append(group.Failures, *c.failure)
		} else {
			group.Trajectories = append(group.Trajectories, c.trajectory)
		}
	}
	return group
}

// cellsOf returns the cells of a scenario.
func (g *gathering) cellsOf(scenario int) []cell {
	return g.cells[scenario*g.opts.GroupSize : (scenario+1)*g.opts.GroupSize]
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
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, group := range groups {
		if group != nil {
			g.results[scenario] = append(g.results[scenario], group)
		}
	}
	g.complete[scenario] = true
}

// failGroup turns the trajectories of a group that After could not handle into failures.
func (g *gathering) failGroup(scenario int, err error) *TrajectoryGroup {
	g.mu.Lock()
	defer g.mu.Unlock()
	err = fmt.Errorf("after hook: %w", err)
	for i, c := range g.cellsOf(scenario) {
		if c.failure == nil {
			g.cellsOf(scenario)[i] = failedCell(scenario, i, 1, err)
			g.fail(1)
		}
	}
	return g.group(scenario)
}

// fail counts failures and ends the gather when there are too many. g.mu is held.
func (g *gathering) fail(n int) {
	g.failed += n
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

// report calls Progress. The lock is taken first, so that calls are in the order of what they say.
func (g *gathering) report() {
	if g.opts.Progress == nil {
		return
	}
	g.reporting <- struct{}{}
	defer func() { <-g.reporting }()
	g.mu.Lock()
	p := GatherProgress{Done: g.done, Total: len(g.cells), Failed: g.failed, Reward: g.rewards.value()}
	broken := g.broken != nil
	g.mu.Unlock()
	if broken {
		return
	}
	o := guard(context.Background(), func() (struct{}, error) { g.opts.Progress(p); return struct{}{}, nil })
	if o.err != nil {
		g.mu.Lock()
		g.broken = o.err
		g.mu.Unlock()
		g.stop()
	}
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
		return groups, &Error{"gather", fmt.Errorf("progress hook: %w", g.broken), "mend GatherOptions.Progress"}
	case g.failed > g.allowed():
		return groups, &Error{"gather", g.tooMany(), "mend the rollout, or allow failures with GatherOptions.MaxFailures"}
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
