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
	if err := o.validate(rollout != nil); err != nil {
		return nil, err
	}
	g := newGathering(o, len(scenarios), func(ctx context.Context, i int) (*Trajectory, error) {
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
	o := GatherOptions{}
	if opts != nil {
		o = *opts
	}
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
	if d.Events == nil {
		d.Events = &Events{}
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
	o.check(&p)
	return p.err("gather", configHint)
}

// check adds every problem of options with defaults.
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
	afterHook  bool // it failed because of After
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
		start := time.Now()
		o := guard(ctx, func() ([]*TrajectoryGroup, error) { return g.opts.After(ctx, group) })
		took := time.Since(start)
		if o.err != nil && ctx.Err() != nil {
			return // cancelled: the group is not complete
		}
		if o.err != nil {
			o.value = []*TrajectoryGroup{g.failGroup(scenario, o.err)}
		}
		groups = slices.DeleteFunc(o.value, func(g *TrajectoryGroup) bool { return g == nil })
		setJudgeTime(groups, took)
	}
	g.mu.Lock()
	g.results[scenario] = groups
	g.complete[scenario] = true
	g.mu.Unlock()
	notify(g, g.opts.Events.GroupEnd, func() GroupEnd { return GroupEnd{g.id, g.first + scenario, groups} })
}

// setJudgeTime stores the duration of After with the first of the groups that it has made of one.
func setJudgeTime(groups []*TrajectoryGroup, took time.Duration) {
	if len(groups) == 0 {
		return
	}
	if groups[0].Metrics == nil {
		groups[0].Metrics = map[string]float64{}
	}
	groups[0].Metrics[JudgeSeconds] = took.Seconds()
}

// failGroup turns the trajectories of a group that After could not handle into failures.
func (g *gathering) failGroup(scenario int, err error) *TrajectoryGroup {
	g.mu.Lock()
	defer g.mu.Unlock()
	err = fmt.Errorf("after hook: %w", err)
	for i, c := range g.cellsOf(scenario) {
		if c.trajectory != nil {
			failed := failedCell(g.first+scenario, i, 1, err)
			failed.afterHook = true
			g.cellsOf(scenario)[i] = failed
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
		return groups, g.tooMany()
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

// tooMany says which rollouts failed, in their order.
func (g *gathering) tooMany() error {
	var f failures
	for _, c := range g.cells {
		f.add(c)
	}
	count := fmt.Sprintf("%d of %d, at most %d allowed", g.failed, len(g.cells), g.allowed())
	return f.tooMany("gather", count, "GatherOptions.")
}

// GatherPlayers is [GatherGroups] for rollouts in which several agents take part, such as both players of a game. Each
// rollout returns one trajectory for each player, in their order. The result has the groups of each player, to be
// trained on by its own model:
//
//	games, err := art.GatherPlayers(ctx, scenarios, 2, play, opts)
//	_, err = white.Train(ctx, games[0], cfg)
//	_, err = black.Train(ctx, games[1], cfg)
//
// A player without a turn has a nil trajectory, which is left out of its group. A rollout that fails is a [Failure] of
// the groups of all players. [GatherOptions].After is refused; the trajectories that events tell of are those of the
// first player who has one. opts may be nil. Errors are those of GatherGroups.
func GatherPlayers[S any](
	ctx context.Context, scenarios []S, players int, rollout func(context.Context, S) ([]*Trajectory, error),
	opts *GatherOptions,
) ([][]*TrajectoryGroup, error) {
	var p problems
	p.check(players > 0, "players is %d, want > 0", players)
	p.check(rollout != nil, "rollout is nil")
	p.check(opts == nil || opts.After == nil, "After is set, and does not know whose group it gets")
	if err := p.err("gather", "call what After would on the groups of the result"); err != nil {
		return nil, err
	}
	t := &table{players: players, seats: map[*Trajectory][]*Trajectory{}}
	groups, err := GatherGroups(ctx, scenarios, func(ctx context.Context, s S) (*Trajectory, error) {
		start := time.Now().UTC().Round(0)
		all, err := rollout(ctx, s)
		if err != nil {
			return nil, err
		}
		return t.seat(all, start)
	}, opts)
	if groups == nil {
		return nil, err
	}
	return t.deal(groups), err
}

// table has the trajectories of all players of a gather.
type table struct {
	players int
	mu      sync.Mutex
	seats   map[*Trajectory][]*Trajectory // by the one that stands for them
}

// seat keeps the trajectories of a rollout, and returns one that stands for them.
func (t *table) seat(all []*Trajectory, start time.Time) (*Trajectory, error) {
	if len(all) != t.players {
		return nil, fmt.Errorf("rollout must return a trajectory for each of its players: want %d, got %d", t.players,
			len(all))
	}
	var first *Trajectory
	for i, x := range all {
		if x == nil {
			continue
		}
		for _, other := range all[:i] {
			if x == other {
				return nil, errors.New("rollout returned one trajectory for two players")
			}
		}
		finish(x, start)
		if first == nil {
			first = x
		}
	}
	if first == nil {
		return nil, errNoTrajectory
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.seats[first] = all
	return first, nil
}

// deal splits groups by player.
func (t *table) deal(groups []*TrajectoryGroup) [][]*TrajectoryGroup {
	out := make([][]*TrajectoryGroup, t.players)
	for _, g := range groups {
		for player := range out {
			own := g.Clone()
			own.Trajectories = nil
			for _, first := range g.Trajectories {
				if x := t.seats[first][player]; x != nil {
					own.Trajectories = append(own.Trajectories, x)
				}
			}
			out[player] = append(out[player], own)
		}
	}
	return out
}
